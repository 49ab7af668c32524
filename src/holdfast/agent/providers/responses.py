"""OpenAI's Responses format; requests are not stored by the provider.

Decision: docs/decisions/0128-own-provider-formats.md
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

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
from holdfast.agent.providers.errors import failed
from holdfast.agent.providers.stream import CUT_ARGUMENTS, ServerEvent, answered, decoded
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

PATH = "/responses"
_WITHOUT_REASONING = ("gpt-3.5", "gpt-4", "chatgpt", "gpt-5-chat")


class Proof(msgspec.Struct, omit_defaults=True):
    """Opaque data that the provider requires back, of a reasoning item or a message."""

    id: str = ""
    encrypted_content: str = ""
    phase: str = ""


class ResponsesEncoder:
    """Encodes messages as input items."""

    opening = closing = between = parting = b""

    def __init__(self, provider: str) -> None:
        self._provider = provider

    def spoken(self, message: ModelMessage) -> bytes:
        """Encode items in stream order; reasoning only if it came from this provider.

        The provider requires a reasoning item to stand directly before the item that followed it.
        """
        if message.provider != self._provider:
            message = replace(message, thinking=(), order=())
        items: list[bytes] = []
        phase = ""
        for block in message.sendable():
            if isinstance(block, ToolCall):
                items.append(_function_call(block))
            elif isinstance(block, str):
                if block.strip():
                    items.append(_message("assistant", words(block), phase))
                phase = ""
            else:
                proof = _proof(block.proof)
                phase = proof.phase or phase
                if proof.encrypted_content:
                    items.append(_reasoning(block, proof))
        return b",".join(items)

    def told(self, message: UserMessage) -> bytes:
        text = b'[{"type":"input_text","text":' + words(message.text) + b"}]"
        return _message("user", text)

    def returned(self, message: ToolMessage) -> bytes:
        name, output = quoted(call_id(message.call)), words(message.text)
        return b"".join(
            (b'{"type":"function_call_output","call_id":', name, b',"output":', output, b"}")
        )


class ResponsesWriter:
    """Encodes request bodies; only new messages of a conversation are encoded."""

    def __init__(self, provider: str) -> None:
        self._transcripts = TranscriptCache(ResponsesEncoder(provider))
        self._tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"[]")

    def body(
        self, choice: ModelChoice, prompt: ModelRequest, without: Omitted = frozenset()
    ) -> bytes:
        """Return the body of a request, without options that the provider has refused."""
        options: dict[str, object] = {"model": choice.model, "stream": True, "store": False}
        if not choice.model.startswith(_WITHOUT_REASONING):
            options["include"] = ["reasoning.encrypted_content"]
            effort = {"effort": choice.effort} if choice.effort else {}
            options["reasoning"] = {**effort, "summary": "auto"}
        if prompt.output_max is not None:
            options["max_output_tokens"] = prompt.output_max
        if prompt.said:
            options["prompt_cache_key"] = call_id(prompt.said[0].id)
        with memoryview(self._transcripts.of(prompt.said).wire) as wire:
            return b"".join(
                (
                    options_bytes(options, without)[:-1],
                    b',"instructions":' + quoted(prompt.system),
                    b',"tools":' + self._written(prompt.tools),
                    b',"input":[',
                    wire[1:],
                    b"]}",
                )
            )

    def _written(self, tools: tuple[ToolSpec, ...]) -> bytes:
        if tools != self._tools[0]:
            written = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                    "strict": False,
                }
                for tool in tools
            ]
            self._tools = tools, msgspec.json.encode(written)
        return self._tools[1]


def sealed(proof: Proof) -> str:
    """Encode a proof for storage with its thinking block."""
    return msgspec.json.encode(proof).decode()


def _message(role: str, content: bytes, phase: str = "") -> bytes:
    meant = b',"phase":' + quoted(phase) if phase else b""
    head = b'{"type":"message","role":"' + role.encode() + b'","content":'
    return b"".join((head, content, meant, b"}"))


def _reasoning(thinking: Thinking, proof: Proof) -> bytes:
    text = (
        b'{"type":"summary_text","text":' + quoted(thinking.text) + b"}" if thinking.text else b""
    )
    return b"".join(
        (
            b'{"type":"reasoning","id":' + quoted(proof.id),
            b',"summary":[' + text,
            b'],"encrypted_content":' + quoted(proof.encrypted_content) + b"}",
        )
    )


def _function_call(call: ToolCall) -> bytes:
    given = arguments(call.arguments).decode()
    return b"".join(
        (
            b'{"type":"function_call","call_id":' + quoted(call_id(call.id)),
            b',"name":' + quoted(tool_name(call.tool)),
            b',"arguments":' + quoted(given) + b"}",
        )
    )


def _proof(text: str) -> Proof:
    try:
        return msgspec.json.decode(text, type=Proof)
    except msgspec.MsgspecError:
        return Proof()


# Parser of the event stream.


class _Head(msgspec.Struct):
    type: str


class _Part(msgspec.Struct):
    text: str | None = None
    refusal: str | None = None


class _Item(msgspec.Struct):
    type: str
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    status: str | None = None
    phase: str | None = None
    encrypted_content: str | None = None
    content: list[_Part] | None = None
    summary: list[_Part] | None = None


class _ItemEvent(msgspec.Struct):
    item: _Item
    output_index: int = 0


class _Delta(msgspec.Struct):
    delta: str | None = None
    output_index: int = 0
    summary_index: int = 0


class _Cached(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _Cached | None = None


class _Why(msgspec.Struct):
    reason: str | None = None


class _Response(msgspec.Struct):
    usage: _Usage | None = None
    incomplete_details: _Why | None = None
    error: msgspec.Raw = msgspec.Raw(b"null")


class _Ending(msgspec.Struct):
    response: _Response


class ResponsesParser:
    """Parses the events of one answer."""

    def __init__(self, choice: ModelChoice) -> None:
        self._choice = choice
        self._blocks: list[Thinking | str | ToolCall] = []
        self._unfinished: list[str] = []  # text of items that are not complete
        self._places: dict[int, int] = {}  # position of each call, by the index of its item
        self._is_refused = False

    def take(self, event: ServerEvent) -> list[AnyAnswerDelta]:
        """Return the deltas of an event; at the end the complete answer."""
        if event.data == b"[DONE]":  # some servers end the stream like chat completions
            return []
        kind = decoded(event.data, _Head, self._choice).type
        match kind:
            case "response.output_text.delta" | "response.refusal.delta":
                self._is_refused |= kind == "response.refusal.delta"
                text = decoded(event.data, _Delta, self._choice).delta or ""
                self._unfinished.append(text)
                return [TextDelta(text)] if text else []
            case "response.output_item.added" | "response.output_item.done":
                found = decoded(event.data, _ItemEvent, self._choice)
                return self._added(found) if kind.endswith("added") else self._done(found)
            case "response.completed" | "response.incomplete":
                response = decoded(event.data, _Ending, self._choice).response
                return self._ended(response, is_cut=kind.endswith("incomplete"))
            case "response.failed":
                raise failed(
                    self._choice, decoded(event.data, _Ending, self._choice).response.error
                )
            case "error":
                raise failed(self._choice, event.data)
            case _:
                return self._thought(kind, event.data)

    def end(self) -> list[AnyAnswerDelta]:
        """Return nothing: a stream without its last event is incomplete."""
        return []

    def _thought(self, kind: str, data: bytes) -> list[AnyAnswerDelta]:
        match kind:
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                text = decoded(data, _Delta, self._choice).delta
                return [ThinkingDelta(text)] if text else []
            case "response.reasoning_summary_part.added":
                is_first = decoded(data, _Delta, self._choice).summary_index == 0
                return [] if is_first else [ThinkingDelta("\n\n")]
            case "response.function_call_arguments.delta":
                more = decoded(data, _Delta, self._choice)
                place = self._places.get(more.output_index)
                known = place is not None and more.delta
                return [ToolCallDelta(place or 0, "", more.delta or "")] if known else []
            case _:
                return []

    def _added(self, found: _ItemEvent) -> list[AnyAnswerDelta]:
        if found.item.type != "function_call":
            return []
        place = self._places.setdefault(found.output_index, len(self._places))
        return [ToolCallDelta(place, found.item.name or "", found.item.arguments or "")]

    def _done(self, found: _ItemEvent) -> list[AnyAnswerDelta]:
        item = found.item
        pieces: list[AnyAnswerDelta] = []
        match item.type:
            case "reasoning":
                proof = Proof(item.id or "", item.encrypted_content or "")
                text = "\n\n".join(part.text or "" for part in item.summary or item.content or [])
                self._keep(Thinking(text, sealed(proof) if proof.encrypted_content else ""))
            case "message":
                parts = item.content or []
                self._is_refused |= any(part.refusal for part in parts)
                self._keep(Thinking("", sealed(Proof(phase=item.phase)) if item.phase else ""))
                self._blocks.append("".join(part.text or part.refusal or "" for part in parts))
                self._unfinished.clear()
            case "function_call":
                if found.output_index not in self._places:
                    pieces = self._added(found)
                name = item.call_id or item.id or f"call_{len(self._blocks)}"
                nothing = CUT_ARGUMENTS if item.status == "incomplete" else ""
                self._blocks.append(ToolCall(name, item.name or "", item.arguments or nothing))
            case _:
                pass
        return pieces

    def _keep(self, thinking: Thinking) -> None:
        if thinking.text or thinking.proof:
            self._blocks.append(thinking)

    def _ended(self, response: _Response, *, is_cut: bool) -> list[AnyAnswerDelta]:
        why, usage = response.incomplete_details, response.usage or _Usage()
        is_cut = is_cut or (why is not None and bool(why.reason))
        stop = StopReason.LENGTH if is_cut else StopReason.DONE
        if self._is_refused or (why is not None and why.reason == "content_filter"):
            stop = StopReason.REFUSED
        cached = usage.input_tokens_details
        return [
            answered(
                self._choice,
                [*self._blocks, *self._unfinished],
                stop=stop,
                tokens=Tokens(
                    input=usage.input_tokens or 0,
                    cached=(cached.cached_tokens or 0) if cached else 0,
                    output=usage.output_tokens or 0,
                ),
            )
        ]
