"""The format of chat completions, as OpenAI defined it and many others speak it.

What servers of the chat-completions format demand beyond the format, as data.

A dialect is chosen by the provider's name, by its address, or, on servers that a person has added,
by the family of the model: open models of Mistral, DeepSeek and Google keep their demands behind
vLLM, LM Studio and gateways.
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
    """Switches of one kind of server; the defaults are OpenAI's own format."""

    name: str = "plain"
    has_short_ids: bool = False  # ids of calls are nine letters or digits
    parts_tool_and_user: bool = False  # a user's message may not follow that of a tool
    wants_reasoning: bool = (
        False  # calls are refused without `reasoning_content`, also an empty one
    )
    wants_signatures: bool = False  # calls are refused without a `thought_signature`

    def id_of(self, call: str) -> str:
        """The id of a call as the server takes it; the same for the same call every time."""
        name = call_id(call)
        if not self.has_short_ids or _SHORT_ID.fullmatch(name):
            return name
        return hashlib.sha256(name.encode()).hexdigest()[:9]


PLAIN: Final = ChatDialect()
MISTRAL: Final = ChatDialect("mistral", has_short_ids=True, parts_tool_and_user=True)
DEEPSEEK: Final = ChatDialect("deepseek", wants_reasoning=True)
GEMINI: Final = ChatDialect("gemini", wants_signatures=True)
GEMINI_2: Final = ChatDialect("gemini-2")  # signatures come, and nothing is refused without them

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
    """The dialect of a model; the family decides only where the provider is not one of ours."""
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
_BROKEN = ("abort", "error", "insufficient_system_resource")  # the server, not the model, ended it
_THOUGHTS = ("reasoning_content", "reasoning")  # who lets see thoughts does so in one of these


_UNSIGNED = '{"google":{"thought_signature":"skip_thought_signature_validator"}}'
"""What Google documents for calls whose signature is lost, or was never made."""
_PARTING = b'{"role":"assistant","content":"Understood."}'


def _plain(model: str) -> ChatDialect:
    del model
    return PLAIN


class ChatEncoder:
    """Writes messages of the four roles, in one dialect."""

    opening = closing = between = b""

    def __init__(self, provider: str, dialect: ChatDialect = PLAIN) -> None:
        self._provider, self._dialect = provider, dialect
        self.parting = _PARTING if dialect.parts_tool_and_user else b""

    def spoken(self, message: ModelMessage) -> bytes:
        """Text and calls, with thoughts where the provider itself has let us see them."""
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
        """A message of the user."""
        return b'{"role":"user","content":' + words(message.text) + b"}"

    def returned(self, message: ToolMessage) -> bytes:
        """A message of a tool."""
        name, text = quoted(self._dialect.id_of(message.call)), words(message.text)
        return b"".join((b'{"role":"tool","tool_call_id":', name, b',"content":', text, b"}"))


class ChatWriter:
    """Writes prompts as bodies of requests, and of each conversation only what is new."""

    def __init__(self, provider: str, dialect: Callable[[str], ChatDialect] = _plain) -> None:
        """Write for a provider; `dialect` says which one a model needs."""
        self._provider, self._dialect = provider, dialect
        self._transcripts: dict[ChatDialect, TranscriptCache] = {}
        self._tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"")

    def body(
        self, choice: ModelChoice, prompt: ModelRequest, without: Omitted = frozenset()
    ) -> bytes:
        """The whole body of a request, without options that the provider has refused."""
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
        """Servers refuse an empty list of tools."""
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
    """A call of which more may come."""

    id: str
    tool: str = ""
    arguments: list[str] = field(default_factory=lambda: [])
    opaque: str = ""


class ChatParser:
    """Reads the chunks of one answer; `fresh` is what unnamed calls are named with."""

    def __init__(self, choice: ModelChoice, fresh: str, size: PromptSize = UNKNOWN_SIZE) -> None:
        self._choice, self._size = choice, size
        self._fresh = fresh
        self._texts: list[str] = []
        self._thoughts: dict[str, list[str]] = {name: [] for name in _THOUGHTS}
        self._calls: list[_Growing] = []
        self._places: dict[int, int] = {}  # of calls, by the index that their server gives them
        self._usage = _Usage()
        self._is_refused = False
        self._finish: str | None = None

    def take(self, event: ServerEvent) -> list[AnyAnswerDelta]:
        """Pieces of text, thoughts and calls; at the mark of the end the answer."""
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
            if not each.index:  # there is one answer; whoever sends more is not read
                self._finish = each.finish_reason or self._finish
                pieces += self._grown(each.delta or _Delta())
        return pieces

    def end(self) -> list[AnyAnswerDelta]:
        """The answer, if it was finished: not everybody who speaks this format marks the end."""
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
        """Which call it is; some servers give all of them one index, or none."""
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
