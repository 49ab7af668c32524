"""Read the events of an answer in the format of Anthropic's Messages."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from holdfast.agent.core.folding import answered, decoded, garbled
from holdfast.agent.core.messages import REDACTED
from holdfast.agent.core.provider_failures import failed
from holdfast.agent.core.sse import ServerEvent
from holdfast.agent.model import (
    AnyPiece,
    Call,
    CallPiece,
    Choice,
    Stop,
    TextPiece,
    Thinking,
    ThinkingPiece,
    Tokens,
)

_STOPS = {
    "max_tokens": Stop.LENGTH,
    "model_context_window_exceeded": Stop.LENGTH,
    "refusal": Stop.REFUSED,
}
_KINDS = {"text", "thinking", "redacted_thinking", "tool_use"}


class _Head(msgspec.Struct):
    type: str


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int | None = None


class _Message(msgspec.Struct):
    usage: _Usage | None = None


class _Start(msgspec.Struct):
    message: _Message


class _Content(msgspec.Struct):
    type: str
    id: str | None = None
    name: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None


class _BlockStart(msgspec.Struct):
    index: int
    content_block: _Content


class _Change(msgspec.Struct):
    type: str
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None


class _BlockDelta(msgspec.Struct):
    index: int
    delta: _Change


class _End(msgspec.Struct):
    stop_reason: str | None = None


class _MessageDelta(msgspec.Struct):
    delta: _End | None = None
    usage: _Usage | None = None


@dataclass
class _Block:
    """A content block of which more may come."""

    kind: str
    id: str = ""
    name: str = ""
    place: int = 0  # among the calls
    texts: list[str] = field(default_factory=lambda: [])
    signature: list[str] = field(default_factory=lambda: [])

    @property
    def whole(self) -> Thinking | str | Call:
        """The block when nothing more comes."""
        text, proof = "".join(self.texts), "".join(self.signature)
        match self.kind:
            case "tool_use":
                return Call(self.id, self.name, text)
            case "redacted_thinking":
                return Thinking("", REDACTED + proof)
            case "thinking":
                return Thinking(text, proof)
            case _:
                return text


class MessagesReading:
    """Reads the events of one answer."""

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._blocks: dict[int, _Block] = {}
        self._usage: dict[str, int] = {}
        self._stop: str | None = None

    def take(self, event: ServerEvent) -> list[AnyPiece]:
        """Pieces of text, thoughts and calls; at a good end the answer."""
        match decoded(event.data, _Head, self._choice).type:
            case "message_start":
                self._counted(decoded(event.data, _Start, self._choice).message.usage)
                return []
            case "content_block_start":
                return self._begun(decoded(event.data, _BlockStart, self._choice))
            case "content_block_delta":
                return self._grown(decoded(event.data, _BlockDelta, self._choice))
            case "message_delta":
                news = decoded(event.data, _MessageDelta, self._choice)
                self._counted(news.usage)
                self._stop = (news.delta and news.delta.stop_reason) or self._stop
                return []
            case "message_stop":
                return self._ended()
            case "error":
                raise failed(self._choice, event.data)
            case _:
                return []

    def end(self) -> list[AnyPiece]:
        """Nothing: the end must have been told."""
        return []

    def _counted(self, usage: _Usage | None) -> None:
        """What is told later is all that it was until then."""
        if usage is not None:
            told: dict[str, int | None] = msgspec.structs.asdict(usage)
            self._usage |= {name: count for name, count in told.items() if count is not None}

    def _begun(self, event: _BlockStart) -> list[AnyPiece]:
        content = event.content_block
        place = sum(block.kind == "tool_use" for block in self._blocks.values())
        block = _Block(content.type, content.id or "", content.name or "", place)
        self._blocks[event.index] = block
        if content.type == "redacted_thinking":
            block.signature.append(content.data or "")
        if content.signature:
            block.signature.append(content.signature)
        pieces: list[AnyPiece] = [CallPiece(place, block.name, "")] if block.id else []
        return pieces + self._more(block, content.text or content.thinking or "")

    def _grown(self, event: _BlockDelta) -> list[AnyPiece]:
        block, delta = self._blocks.get(event.index), event.delta
        if block is None:
            raise garbled(self._choice, "a block goes on that was not begun")
        if delta.signature:
            block.signature.append(delta.signature)
        return self._more(block, delta.text or delta.thinking or delta.partial_json or "")

    def _more(self, block: _Block, text: str) -> list[AnyPiece]:
        if not text:
            return []
        block.texts.append(text)
        match block.kind:
            case "text":
                return [TextPiece(text)]
            case "thinking":
                return [ThinkingPiece(text)]
            case "tool_use":
                return [CallPiece(block.place, "", text)]
            case _:
                return []

    def _ended(self) -> list[AnyPiece]:
        if self._stop is None:
            raise garbled(self._choice, "it ends without a reason")
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        count = self._usage.get
        cached = count("cache_read_input_tokens", 0)
        written = count("cache_creation_input_tokens", 0)
        return [
            answered(
                self._choice,
                [each.whole for each in blocks if each.kind in _KINDS],
                stop=_STOPS.get(self._stop, Stop.DONE),
                tokens=Tokens(
                    input=count("input_tokens", 0) + written + cached,
                    cached=cached,
                    output=count("output_tokens", 0),
                    written=written,
                ),
            )
        ]
