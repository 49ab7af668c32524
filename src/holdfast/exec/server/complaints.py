"""A transport that answers what cannot be read, and hands on the rest."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, Raw, UnsetType

from holdfast.exec.core.codes import malformed_error
from holdfast.rpc import Transport, WebSocketTransport

Text = bytes | tuple[bytes, ...]
"""A message, whole or in parts."""

_TEXT_MAX = 500


class _Envelope(msgspec.Struct, gc=False):
    """What makes a message: a method, or the answer to one."""

    method: str | UnsetType = UNSET
    id: int | str | UnsetType | None = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


_read = msgspec.json.Decoder(_Envelope).decode


class ComplainingTransport:
    """Any transport; a message that is none is answered under the id -1, and goes no further.

    A client that sends such a message has lost track of what it waits for, and learns so. What is
    said in parts is put together only for a transport that cannot send parts.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._gathering = transport if isinstance(transport, WebSocketTransport) else None

    async def receive(self) -> Sequence[bytes]:
        """Wait for messages that can be read; raise what ended it."""
        while True:
            readable: list[bytes] = []
            for message in await self._transport.receive():
                reason = _complaint(message)
                if reason is None:
                    readable.append(message)
                else:
                    self._transport.offer([msgspec.json.encode(malformed_error(reason))])
            if readable:
                return readable

    async def send(self, messages: Sequence[Text]) -> None:
        """Hand messages over, in order, waiting while the other side is slow to read."""
        if self._gathering is not None:
            await self._gathering.send(messages)
        else:
            await self._transport.send([_whole(each) for each in messages])

    def offer(self, messages: Sequence[Text]) -> bool:
        """Hand messages over if that needs no waiting, and say whether it was done."""
        if self._gathering is not None:
            return self._gathering.offer(messages)
        return self._transport.offer([_whole(each) for each in messages])

    async def aclose(self) -> None:
        """End it and release all it holds."""
        await self._transport.aclose()


def _whole(message: Text) -> bytes:
    return message if isinstance(message, bytes) else b"".join(message)


def _complaint(message: bytes) -> str | None:
    try:
        envelope = _read(message)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return str(error)[:_TEXT_MAX]
    if envelope.method is not UNSET or envelope.result is not UNSET or envelope.error is not UNSET:
        return None
    return "missing field `error`"
