"""Go on with an agent that has forgotten a conversation: it is told again what was said."""

from __future__ import annotations

from contextlib import aclosing

import msgspec

from holdfast.failures import to_wire
from holdfast.host.book import Book
from holdfast.host.core.retelling import retold
from holdfast.host.model import AnyRecord, Prompted
from holdfast.runners.failures import SessionUnknown
from holdfast.runners.model import Noticed

_decoder: msgspec.json.Decoder[AnyRecord] = msgspec.json.Decoder(AnyRecord)


def forgotten(unknown: SessionUnknown) -> Noticed:
    """What the person is told of it."""
    text = "The agent no longer knows this conversation. It is told again what was said."
    return Noticed(text, to_wire(unknown))


async def recalled(book: Book, prompted: Prompted) -> str:
    """A prompt for an agent that knows nothing: with all that was said before it."""
    records: list[AnyRecord] = []
    last = book.seq
    async with aclosing(book.follow(0)) as pages:
        async for page in pages:
            records += [_decoder.decode(line.data) for line in page]
            if page[-1].seq >= last:
                break
    return retold(records, prompted)
