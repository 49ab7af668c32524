"""Chat-completions format, as OpenAI defined it and many servers implement it.

A dialect lists what a server demands beyond the format. It is chosen by the provider's name, by its
URL, or, for servers that a person has added, by the model family: open models of Mistral, DeepSeek
and Google have the same demands behind vLLM, LM Studio and gateways.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from holdfast.agent.failures import ModelOverloaded
from holdfast.agent.model import (
    AnyAnswerDelta,
    ModelChoice,
    ModelMessage,
    ModelRequest,
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
from holdfast.agent.providers.errors import UNKNOWN_SIZE, PromptSize, failed
from holdfast.agent.providers.stream import ServerEvent, answered, decoded, garbled
from holdfast.agent.providers.text import (
    Omitted,
    TranscriptCache,
    arguments,
    call_id,
    options_bytes,
    quoted,
    tool_name,
    words,
)

_SHORT_ID: Final = re.compile(r"[A-Za-z0-9]{9}")


class ChatDialect(NamedTuple):
    """Switches for one kind of server; the defaults are OpenAI's own format."""

    name: str = "plain"
    has_short_ids: bool = False  # tool call ids are nine letters or digits
    parts_tool_and_user: bool = False  # a user message must not follow a tool message
    wants_reasoning: bool = (
        False  # calls are refused without `reasoning_content`, even an empty one
    )
    wants_signatures: bool = False  # calls are refused without a `thought_signature`

    def id_of(self, call: str) -> str:
        """Return an id that the server accepts; deterministic."""
        name = call_id(call)
        if not self.has_short_ids or _SHORT_ID.fullmatch(name):
            return name
        return hashlib.sha256(name.encode()).hexdigest()[:9]


PLAIN: Final = ChatDialect()
MISTRAL: Final = ChatDialect("mistral", has_short_ids=True, parts_tool_and_user=True)
DEEPSEEK: Final = ChatDialect("deepseek", wants_reasoning=True)
GEMINI: Final = ChatDialect("gemini", wants_signatures=True)
GEMINI_2: Final = ChatDialect("gemini-2")  # sends signatures, but does not require them

_HOSTS: Final = {
    "api.mistral.ai": MISTRAL,
    "api.deepseek.com": DEEPSEEK,
    "generativelanguage.googleapis.com": GEMINI,
}
_NAMES: Final = {"mistral": MISTRAL, "deepseek": DEEPSEEK, "google": GEMINI}
_FAMILIES: Final = (
    (
        re.compile(r"(?:mis|minis|magis|mix|devs|codes)tral|pixtral|mathstral"),
        MISTRAL,
    ),
    (re.compile(r"deepseek"), DEEPSEEK),
    (re.compile(r"gemini"), GEMINI),
)
_OLD_GEMINI: Final = re.compile(r"gemini-(?:1|2)[.-]")


def chat_dialect(provider: str, url: str, model: str, *, is_known: bool) -> ChatDialect:
    """Return the dialect of a model; the family decides only for unknown providers."""
    found = _NAMES.get(provider) or _HOSTS.get(urlsplit(url).hostname or "")
    family = model.lower()
    if found is None and not is_known:
        found = next((each for known, each in _FAMILIES if known.search(family)), None)
    if found is GEMINI and _OLD_GEMINI.search(family):
        return GEMINI_2
    return found or PLAIN


PATH = "/chat/completions"
_STOPS = {
    "length": StopReason.LENGTH,
    "max_tokens": StopReason.LENGTH,
    "model_length": StopReason.LENGTH,  # Mistral: the window is full
    "content_filter": StopReason.REFUSED,
}
# The server ended the answer, not the model.
_BROKEN = ("abort", "error", "insufficient_system_resource")
_THOUGHTS = ("reasoning_content", "reasoning")  # servers use one of these for reasoning


_UNSIGNED = '{"google":{"thought_signature":"skip_thought_signature_validator"}}'
"""Documented by Google for calls without a signature."""
_PARTING = b'{"role":"assistant","content":"Understood."}'


def _plain(model: str) -> ChatDialect:
    del model
    return PLAIN


class ChatEncoder:
    """Encodes messages of the four roles in a dialect."""

    opening = closing = between = b""

    def __init__(self, provider: str, dialect: ChatDialect = PLAIN) -> None:
        self._provider, self._dialect = provider, dialect
        self.parting = _PARTING if dialect.parts_tool_and_user else b""

    def spoken(self, message: ModelMessage) -> bytes:
        """Encode text and calls, with reasoning if it came from this provider."""
        parts = [b'{"role":"assistant","content":']
        parts.append(words(message.text) if message.text.strip() else b"null")
        is_own = message.provider == self._provider
        own = message.thinking if is_own else ()
        for name in _THOUGHTS:
            thoughts = "".join(each.text for each in own if each.proof == name)
            is_due = self._dialect.wants_reasoning and name == _THOUGHTS[0] and message.calls
            if thoughts or is_due:
                parts.append(b',"' + name.encode() + b'":' + quoted(thoughts))
        if message.calls:
            calls = b",".join(self._tool_calls(message, is_own=is_own))
            parts.append(b',"tool_calls":[' + calls + b"]")
        return b"".join((*parts, b"}"))

    def _tool_calls(self, message: ModelMessage, *, is_own: bool) -> Iterator[bytes]:
        for at, call in enumerate(message.calls):
            opaque = call.opaque if is_own else ""
            if not opaque and at == 0 and self._dialect.wants_signatures:
                opaque = _UNSIGNED
            given = arguments(call.arguments).decode()
            extra = b',"extra_content":' + opaque.encode() if opaque else b""
            yield b"".join(
                (
                    b'{"type":"function","id":' + quoted(self._dialect.id_of(call.id)),
                    b',"function":{"name":' + quoted(tool_name(call.tool)),
                    b',"arguments":' + quoted(given) + b"}" + extra + b"}",
                )
            )

    def told(self, message: UserMessage) -> bytes:
        return b'{"role":"user","content":' + words(message.text) + b"}"

    def returned(self, message: ToolMessage) -> bytes:
        name, text = quoted(self._dialect.id_of(message.call)), words(message.text)
        return b"".join((b'{"role":"tool","tool_call_id":', name, b',"content":', text, b"}"))


class ChatWriter:
    """Encodes request bodies; only new messages of a conversation are encoded."""

    def __init__(self, provider: str, dialect: Callable[[str], ChatDialect] = _plain) -> None:
        """Encode for a provider; `dialect` returns the dialect of a model."""
        self._provider, self._dialect = provider, dialect
        self._transcripts: dict[ChatDialect, TranscriptCache] = {}
        self._tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"")

    def body(
        self, choice: ModelChoice, prompt: ModelRequest, without: Omitted = frozenset()
    ) -> bytes:
        """Return the body of a request, without options that the provider has refused."""
        options: dict[str, object] = {
            "model": choice.model,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if choice.effort:
            options["reasoning_effort"] = choice.effort
        if prompt.output_max is not None:
            options["max_tokens"] = prompt.output_max
        dialect = self._dialect(choice.model)
        if dialect not in self._transcripts:
            self._transcripts[dialect] = TranscriptCache(ChatEncoder(self._provider, dialect))
        with memoryview(self._transcripts[dialect].of(prompt.said).wire) as wire:
            return b"".join(
                (
                    options_bytes(options, without)[:-1],
                    self._written(prompt.tools),
                    b',"messages":[{"role":"system","content":',
                    words(prompt.system),
                    b"}",
                    wire,
                    b"]}",
                )
            )

    def _written(self, tools: tuple[ToolSpec, ...]) -> bytes:
        """Encode the tools; servers refuse an empty list."""
        if tools != self._tools[0]:
            functions = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.parameters,
                    },
                }
                for tool in tools
            ]
            written = b',"tools":' + msgspec.json.encode(functions) if tools else b""
            self._tools = tools, written
        return self._tools[1]


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None
    extra_content: msgspec.Raw = msgspec.Raw(b"null")


class _Delta(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Alternative(msgspec.Struct):
    index: int | None = None
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Cached(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Cached | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Alternative] | None = None
    usage: _Usage | None = None
    error: msgspec.Raw = msgspec.Raw(b"null")


@dataclass
class _Growing:
    """A tool call that is still streaming."""

    id: str
    tool: str = ""
    arguments: list[str] = field(default_factory=lambda: [])
    opaque: str = ""


class ChatParser:
    """Parses the chunks of one answer; `fresh` is a prefix for missing call ids."""

    def __init__(self, choice: ModelChoice, fresh: str, size: PromptSize = UNKNOWN_SIZE) -> None:
        self._choice, self._size = choice, size
        self._fresh = fresh
        self._texts: list[str] = []
        self._thoughts: dict[str, list[str]] = {name: [] for name in _THOUGHTS}
        self._calls: list[_Growing] = []
        self._places: dict[int, int] = {}  # position of each call, by the server's index
        self._usage = _Usage()
        self._is_refused = False
        self._finish: str | None = None

    def take(self, event: ServerEvent) -> list[AnyAnswerDelta]:
        """Return the deltas of an event; at `[DONE]` the complete answer."""
        if event.data.strip() == b"[DONE]":
            if self._finish is None:
                raise garbled(self._choice, "it ends without a reason")
            return self.end()
        chunk = decoded(event.data, _Chunk, self._choice)
        if bytes(chunk.error) != b"null":
            raise failed(self._choice, event.data, self._size)
        self._usage = chunk.usage or self._usage
        pieces: list[AnyAnswerDelta] = []
        for each in chunk.choices or []:
            if not each.index:  # further alternatives are ignored
                self._finish = each.finish_reason or self._finish
                pieces += self._grown(each.delta or _Delta())
        return pieces

    def end(self) -> list[AnyAnswerDelta]:
        """Return the answer if it has a finish reason: not every server sends `[DONE]`."""
        if self._finish is None:
            return []
        if self._finish in _BROKEN:
            named = {"provider": self._choice.provider, "model": self._choice.model}
            raise ModelOverloaded(**named, status=200, word=self._finish)
        stop = StopReason.REFUSED if self._is_refused else _STOPS.get(self._finish, StopReason.DONE)
        cached = self._usage.prompt_tokens_details
        thoughts = {name: "".join(parts) for name, parts in self._thoughts.items()}
        return [
            answered(
                self._choice,
                [
                    *(Thinking(text, proof=name) for name, text in thoughts.items() if text),
                    "".join(self._texts),
                    *(
                        ToolCall(call.id, call.tool, "".join(call.arguments), call.opaque)
                        for call in self._calls
                    ),
                ],
                stop=stop,
                tokens=Tokens(
                    input=self._usage.prompt_tokens or 0,
                    cached=(cached.cached_tokens or 0) if cached else 0,
                    output=self._usage.completion_tokens or 0,
                ),
            )
        ]

    def _grown(self, delta: _Delta) -> list[AnyAnswerDelta]:
        pieces: list[AnyAnswerDelta] = []
        for name, thought in zip(
            _THOUGHTS, (delta.reasoning_content, delta.reasoning), strict=True
        ):
            if thought:
                self._thoughts[name].append(thought)
                pieces.append(ThinkingDelta(thought))
        self._is_refused |= bool(delta.refusal)
        if text := delta.content or delta.refusal:
            self._texts.append(text)
            pieces.append(TextDelta(text))
        return pieces + [self._called(call) for call in delta.tool_calls or []]

    def _called(self, more: _ToolCall) -> ToolCallDelta:
        function = more.function or _Function()
        place = self._place(more, begins=bool(function.name))
        call = self._calls[place]
        is_named_now = bool(function.name) and not call.tool
        if is_named_now:
            call.tool = function.name or ""
        call.arguments.append(function.arguments or "")
        if (extra := bytes(more.extra_content)) != b"null":
            call.opaque = extra.decode()
        return ToolCallDelta(place, call.tool if is_named_now else "", function.arguments or "")

    def _place(self, more: _ToolCall, *, begins: bool) -> int:
        """Return the position of a call; some servers send the same index for all, or none."""
        index = len(self._calls) - (not begins) if more.index is None else more.index
        place = self._places.get(index)
        is_another = place is not None and begins and more.id and more.id != self._calls[place].id
        if place is None or is_another:
            place = len(self._calls)
            taken = {call.id for call in self._calls}
            own = f"call_{self._fresh}_{place}"
            self._calls.append(_Growing(own if not more.id or more.id in taken else more.id))
            self._places[index] = place
        return place
