"""Server-sent events, and helpers for the parsers of all formats.

`EventReader` accepts chunks with any boundaries, in linear time and bounded memory: a line or an
event that exceeds the limit raises Overlong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from holdfast.agent.failures import AnswerGarbled
from holdfast.agent.model import (
    AnswerCompleted,
    AnyAnswerDelta,
    ModelChoice,
    ModelMessage,
    StopReason,
    Thinking,
    Tokens,
    ToolCall,
    order_of,
)

_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"

EVENT_BYTES_MAX = 16 * 2**20


class Overlong(ValueError):
    """A line or an event exceeds the limit."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """An event: its name, if any, and its data."""

    name: str
    data: bytes


class EventReader:
    """Incremental parser of server-sent events; unusable after Overlong."""

    def __init__(self, *, event_bytes_max: int = EVENT_BYTES_MAX) -> None:
        self._bytes_max = event_bytes_max
        self._is_begun = False
        self._partial: list[bytes] = []  # of an incomplete line
        self._held = 0
        # CR LF is one line ending, and the chunk boundary may be between the two.
        self._was_return = False
        self._name = ""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Add a chunk; return the events that are complete."""
        if not self._is_begun:
            chunk = self._begin(chunk)
        if not chunk:
            return []
        if self._was_return:
            chunk = chunk.removeprefix(b"\n")
            self._was_return = False
        found: list[ServerEvent] = []
        at = 0
        for end in _END.finditer(chunk):
            self._take(chunk[at : end.start()], found)
            at = end.end()
        self._was_return = at > 0 and at == len(chunk) and chunk.endswith(b"\r")
        if at < len(chunk):
            self._hold(chunk[at:])
        return found

    def _begin(self, chunk: bytes) -> bytes:
        """Strip a byte order mark."""
        chunk = b"".join((*self._partial, chunk))
        self._partial, self._held = [], 0
        if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
            self._partial, self._held = [chunk], len(chunk)
            return b""
        self._is_begun = True
        return chunk.removeprefix(_BOM)

    def _hold(self, piece: bytes) -> None:
        self._held += len(piece)
        if self._held > self._bytes_max:
            raise Overlong
        self._partial.append(piece)

    def _take(self, line: bytes, found: list[ServerEvent]) -> None:
        if self._partial:
            self._held -= sum(map(len, self._partial))
            line = b"".join((*self._partial, line))
            self._partial = []
        if not line:
            self._dispatch(found)
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._held += len(value) + 1
            if self._held > self._bytes_max:
                raise Overlong
            self._data.append(value)
        elif field == b"event":
            self._name = value[:256].decode("utf-8", "replace")

    def _dispatch(self, found: list[ServerEvent]) -> None:
        if self._data:
            found.append(ServerEvent(self._name, b"\n".join(self._data)))
        self._name, self._data, self._held = "", [], 0


Shape = TypeVar("Shape")

CUT_ARGUMENTS: Final = "{"  # for a call of which no arguments arrived


class AnswerParser(Protocol):
    """Parses the events of one answer; raises its failure."""

    def take(self, event: ServerEvent) -> list[AnyAnswerDelta]:
        """Return the deltas of an event; the last one is `AnswerCompleted`."""
        ...

    def end(self) -> list[AnyAnswerDelta]:
        """Return the last deltas at the end of the stream; none if the answer is incomplete."""
        ...


def decoded(data: bytes, shape: type[Shape], choice: ModelChoice) -> Shape:
    """Decode the data of an event; raises AnswerGarbled."""
    try:
        return msgspec.json.decode(data, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise garbled(choice, f"an event is no {shape.__name__.strip('_').lower()}") from error


def garbled(choice: ModelChoice, problem: str) -> AnswerGarbled:
    """Return the failure for an invalid answer."""
    return AnswerGarbled(provider=choice.provider, model=choice.model, problem=problem)


def answered(
    choice: ModelChoice,
    blocks: Sequence[Thinking | str | ToolCall],
    *,
    stop: StopReason,
    tokens: Tokens,
) -> AnswerCompleted:
    """Build a complete answer from its blocks in stream order.

    A truncated call is kept with arguments that are not a JSON object: it is never executed, and
    the model receives the reason as its result. A call without a tool name is dropped.
    """
    is_cut = stop is StopReason.LENGTH
    last = len(blocks) - 1
    found: list[Thinking | str | ToolCall] = []
    for at, block in enumerate(blocks):
        if isinstance(block, ToolCall):
            if not block.tool and is_cut:
                continue
            if not block.arguments.strip():
                block = replace(block, arguments=CUT_ARGUMENTS if is_cut and at == last else "{}")
        if isinstance(block, str) and found and isinstance(found[-1], str):
            found[-1] += block
        elif block:
            found.append(block)
    calls = tuple(each for each in found if isinstance(each, ToolCall))
    if stop not in (StopReason.LENGTH, StopReason.REFUSED):
        stop = StopReason.CALLS if calls else StopReason.DONE
    message = ModelMessage(
        text="".join(each for each in found if isinstance(each, str)),
        thinking=tuple(each for each in found if isinstance(each, Thinking)),
        calls=calls,
        provider=choice.provider,
        model=choice.model,
        order=order_of(found),
    )
    return AnswerCompleted(message, stop, tokens)
