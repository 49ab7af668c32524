"""Anthropic's Messages format."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from holdfast.agent.model import (
    AnyAnswerDelta,
    ModelChoice,
    ModelMessage,
    ModelRequest,
    PromptMessage,
    StopReason,
    TextDelta,
    Thinking,
    ThinkingDelta,
    Tokens,
    ToolCall,
    ToolCallDelta,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from holdfast.agent.providers.errors import failed
from holdfast.agent.providers.stream import ServerEvent, answered, decoded, garbled
from holdfast.agent.providers.text import (
    MessageGroup,
    Omitted,
    TranscriptCache,
    arguments,
    call_id,
    options_bytes,
    quoted,
    speaks,
    tool_name,
    words,
)

PATH = "/messages"
VERSION = "2023-06-01"
# Tokens. The format requires a limit.
OUTPUT_MAX = 32_000
_OUTPUT_MAX = (("claude-3-5", 8_192), ("claude-3-7", OUTPUT_MAX), ("claude-3", 4_096))
"""Models with a lower limit, by prefix."""
REDACTED = "redacted:"  # prefix of the proof of a redacted thinking block
_BUDGETS = {"minimal": 1_024, "low": 4_096, "medium": 10_240, "high": 20_480}
_BUDGET_MOST = 30_720
_BY_BUDGET = (
    *("claude-3-7", "claude-haiku-4-5"),
    *("claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2", "claude-opus-4-5"),
    *("claude-sonnet-4-0", "claude-sonnet-4-2", "claude-sonnet-4-5"),
)
_THOUGHTLESS = ("claude-3-5", "claude-3-opus", "claude-3-sonnet", "claude-3-haiku")
_CACHED = b',"cache_control":{"type":"ephemeral"}'
_GO_ON = b'{"role":"user","content":[{"type":"text","text":"(go on)"}]}'


class MessagesEncoder:
    """Encodes messages as content blocks; everything between two answers is one message."""

    opening = b'{"role":"user","content":['
    closing = b"]}"
    between = b"," + _GO_ON
    parting = b""

    def __init__(self, provider: str) -> None:
        self._provider = provider

    def spoken(self, message: ModelMessage) -> bytes:
        """Encode blocks in stream order; thinking only if it came from this provider.

        The provider verifies the position of thinking blocks, also between text and calls.
        """
        if message.provider != self._provider:
            message = replace(message, thinking=(), order=())
        blocks = b",".join(filter(None, map(_block, message.sendable())))
        return b'{"role":"assistant","content":[' + blocks + b"]}"

    def told(self, message: UserMessage) -> bytes:
        return b'{"type":"text","text":' + words(message.text) + b"}"

    def returned(self, message: ToolMessage) -> bytes:
        return b"".join(
            (
                b'{"type":"tool_result","tool_use_id":' + quoted(call_id(message.call)),
                b',"content":' + words(message.text),
                b',"is_error":true}' if message.is_error else b"}",
            )
        )


class MessagesWriter:
    """Encodes request bodies; only new messages of a conversation are encoded.

    Cache breakpoints are set at the last message and at the one before, because the provider looks
    for a cached prefix only a few blocks back.
    """

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._transcripts = TranscriptCache(MessagesEncoder(provider))
        self._tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"")

    def body(
        self, choice: ModelChoice, prompt: ModelRequest, without: Omitted = frozenset()
    ) -> bytes:
        """Return the body of a request, without options that the provider has refused."""
        limit = prompt.output_max or _most(choice.model)
        options: dict[str, object] = {
            "model": choice.model,
            "stream": True,
            "max_tokens": limit,
            **_thought(choice, limit, is_foreign=self._is_foreign(prompt.said)),
        }
        transcript = self._transcripts.of(prompt.said)
        with memoryview(transcript.wire) as wire:
            return b"".join(
                (
                    options_bytes(options, without)[:-1],
                    _system(prompt.system),
                    self._written(prompt.tools),
                    b',"messages":[',
                    *_marked(wire, transcript.runs),
                    b"]}",
                )
            )

    def _written(self, tools: tuple[ToolSpec, ...]) -> bytes:
        if tools != self._tools[0]:
            written = [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": {"type": "object", **tool.parameters},
                }
                for tool in tools
            ]
            self._tools = tools, b',"tools":' + msgspec.json.encode(written) if tools else b""
        return self._tools[1]

    def _is_foreign(self, said: tuple[PromptMessage, ...]) -> bool:
        """Whether the last calls came from another provider, so that their thinking is missing."""
        last = next((each for each in reversed(said) if speaks(each)), None)
        message = last.message if last else None
        return isinstance(message, ModelMessage) and bool(
            message.calls and message.provider != self._provider
        )


def _most(model: str) -> int:
    named = (most for start, most in _OUTPUT_MAX if _plain(model).startswith(start))
    return next(named, OUTPUT_MAX)


def _plain(model: str) -> str:
    """Return a model name without a gateway's prefix, and with uniform separators."""
    return model.rpartition("/")[2].replace(".", "-")


def _thought(choice: ModelChoice, limit: int, *, is_foreign: bool) -> dict[str, object]:
    """Return the thinking options that this model supports."""
    if not choice.effort or is_foreign or _plain(choice.model).startswith(_THOUGHTLESS):
        return {}
    if choice.effort == "none":
        return {"thinking": {"type": "disabled"}}
    if not _plain(choice.model).startswith(_BY_BUDGET):
        thinking = {"type": "adaptive", "display": "summarized"}
        effort = {"minimal": "low"}.get(choice.effort, choice.effort)
        return {"thinking": thinking, "output_config": {"effort": effort}}
    budget = min(_BUDGETS.get(choice.effort, _BUDGET_MOST), limit - 1)
    return {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget >= 1_024 else {}


def _system(text: str) -> bytes:
    if not text.strip():
        return b""
    return b',"system":[{"type":"text","text":' + quoted(text) + _CACHED + b"}]"


def _marked(wire: memoryview, runs: list[MessageGroup]) -> list[bytes | memoryview]:
    """Return the messages with cache breakpoints."""
    said = [run for run in runs if run.close > run.start]
    parts: list[bytes | memoryview] = []
    at = 1
    if not said or not said[0].is_told:
        parts = [_GO_ON, b","] if said else [_GO_ON]
    for run in [run for run in said if run.is_told][-2:]:
        parts += [wire[at : run.close], _CACHED]
        at = run.close
    parts.append(wire[at:])
    if said and not said[-1].is_told:
        parts += [b",", _GO_ON]
    return parts


def _block(block: Thinking | str | ToolCall) -> bytes:
    """Encode a block; empty for unsigned thinking and for blank text."""
    if isinstance(block, ToolCall):
        return _tool_use(block)
    if isinstance(block, Thinking):
        return _thinking(block) if block.proof else b""
    # The provider rejects a final text that ends in white space.
    text = block.rstrip()
    return b'{"type":"text","text":' + quoted(text) + b"}" if text else b""


def _thinking(thinking: Thinking) -> bytes:
    if thinking.proof.startswith(REDACTED):
        data = quoted(thinking.proof.removeprefix(REDACTED))
        return b'{"type":"redacted_thinking","data":' + data + b"}"
    return b"".join(
        (
            b'{"type":"thinking","thinking":' + quoted(thinking.text),
            b',"signature":' + quoted(thinking.proof) + b"}",
        )
    )


def _tool_use(call: ToolCall) -> bytes:
    return b"".join(
        (
            b'{"type":"tool_use","id":' + quoted(call_id(call.id)),
            b',"name":' + quoted(tool_name(call.tool)),
            b',"input":' + arguments(call.arguments) + b"}",
        )
    )


# Parser of the event stream.

_STOPS = {
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "refusal": StopReason.REFUSED,
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
    """A content block that is still streaming."""

    kind: str
    id: str = ""
    name: str = ""
    place: int = 0  # position among the calls
    texts: list[str] = field(default_factory=lambda: [])
    signature: list[str] = field(default_factory=lambda: [])

    @property
    def whole(self) -> Thinking | str | ToolCall:
        """Return the complete block."""
        text, proof = "".join(self.texts), "".join(self.signature)
        match self.kind:
            case "tool_use":
                return ToolCall(self.id, self.name, text)
            case "redacted_thinking":
                return Thinking("", REDACTED + proof)
            case "thinking":
                return Thinking(text, proof)
            case _:
                return text


class MessagesParser:
    """Parses the events of one answer."""

    def __init__(self, choice: ModelChoice) -> None:
        self._choice = choice
        self._blocks: dict[int, _Block] = {}
        self._usage: dict[str, int] = {}
        self._stop: str | None = None

    def take(self, event: ServerEvent) -> list[AnyAnswerDelta]:
        """Return the deltas of an event; at the end the complete answer."""
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

    def end(self) -> list[AnyAnswerDelta]:
        """Return nothing: a stream without `message_stop` is incomplete."""
        return []

    def _counted(self, usage: _Usage | None) -> None:
        """Update usage; later values are cumulative."""
        if usage is not None:
            told: dict[str, int | None] = msgspec.structs.asdict(usage)
            self._usage |= {name: count for name, count in told.items() if count is not None}

    def _begun(self, event: _BlockStart) -> list[AnyAnswerDelta]:
        content = event.content_block
        place = sum(block.kind == "tool_use" for block in self._blocks.values())
        block = _Block(content.type, content.id or "", content.name or "", place)
        self._blocks[event.index] = block
        if content.type == "redacted_thinking":
            block.signature.append(content.data or "")
        if content.signature:
            block.signature.append(content.signature)
        pieces: list[AnyAnswerDelta] = [ToolCallDelta(place, block.name, "")] if block.id else []
        return pieces + self._more(block, content.text or content.thinking or "")

    def _grown(self, event: _BlockDelta) -> list[AnyAnswerDelta]:
        block, delta = self._blocks.get(event.index), event.delta
        if block is None:
            raise garbled(self._choice, "a block goes on that was not begun")
        if delta.signature:
            block.signature.append(delta.signature)
        return self._more(block, delta.text or delta.thinking or delta.partial_json or "")

    def _more(self, block: _Block, text: str) -> list[AnyAnswerDelta]:
        if not text:
            return []
        block.texts.append(text)
        match block.kind:
            case "text":
                return [TextDelta(text)]
            case "thinking":
                return [ThinkingDelta(text)]
            case "tool_use":
                return [ToolCallDelta(block.place, "", text)]
            case _:
                return []

    def _ended(self) -> list[AnyAnswerDelta]:
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
                stop=_STOPS.get(self._stop, StopReason.DONE),
                tokens=Tokens(
                    input=count("input_tokens", 0) + written + cached,
                    cached=cached,
                    output=count("output_tokens", 0),
                    written=written,
                ),
            )
        ]
