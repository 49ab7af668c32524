"""Answers as the events that each kind of provider sends, one `bytes` for each event."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from holdfast.agent.model import ModelChoice, StopReason, ToolCall
from holdfast.agent.providers.registry import Format
from holdfast.agent.providers.scripted import ScriptedAnswer, message_of

Event = dict[str, Any]  # Any: JSON, as the API defines it

NOBODY = ModelChoice("", "")
ENCRYPTED = "gAAAA-encrypted"
SIGNATURE = "c2lnbmF0dXJl"


def frames(form: Format, line: ScriptedAnswer, mark: str = "m") -> list[bytes]:
    """All events of a line; one that fails lacks its end."""
    made = {
        Format.RESPONSES: _responses,
        Format.CHAT: _chat,
        Format.MESSAGES: _messages,
    }[form](line, mark)
    return list(made)


def error(form: Format, word: str) -> bytes:
    """The event by which a stream that began well says that it has failed."""
    told = {"type": word, "code": word, "message": "scripted"}
    match form:
        case Format.RESPONSES:
            response = {"id": "resp_1", "error": told}
            return sse({"type": "response.failed", "response": response})
        case Format.CHAT:
            return data({"error": told})
        case Format.MESSAGES:
            return sse({"type": "error", "error": told})


def sse(event: Event) -> bytes:
    """An event with its name."""
    return f"event: {event['type']}\n".encode() + data(event)


def data(event: Event) -> bytes:
    """An event without a name."""
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def pieces(text: str) -> list[str]:
    """A text in parts of a few letters."""
    return [text[at : at + 7] for at in range(0, len(text), 7)]


def _calls(line: ScriptedAnswer, mark: str) -> list[ToolCall]:
    return list(message_of(ScriptedAnswer(calls=line.calls), NOBODY, mark).calls)


def _responses(line: ScriptedAnswer, mark: str) -> Iterator[bytes]:
    yield sse({"type": "response.created", "response": {"id": "resp_1", "output": []}})
    yield sse({"type": "response.in_progress", "response": {"id": "resp_1"}})
    at = 0
    if line.think:
        item: Event = {"id": "rs_1", "type": "reasoning", "summary": []}
        where: Event = {"item_id": "rs_1", "output_index": at, "summary_index": 0}
        yield sse({"type": "response.output_item.added", "output_index": at, "item": item})
        yield sse({"type": "response.reasoning_summary_part.added", **where, "part": {}})
        for part in pieces(line.think):
            yield sse({"type": "response.reasoning_summary_text.delta", **where, "delta": part})
        item["summary"] = [{"type": "summary_text", "text": line.think}]
        item["encrypted_content"] = ENCRYPTED
        yield sse({"type": "response.output_item.done", "output_index": at, "item": item})
        at += 1
    if line.say:
        yield from _said(line, at)
        at += 1
    for call in _calls(line, mark):
        yield from _function_call(call, at)
        at += 1
    if not line.fail:
        usage = {
            "input_tokens": line.tokens.input,
            "input_tokens_details": {"cached_tokens": line.tokens.cached},
            "output_tokens": line.tokens.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": line.tokens.input + line.tokens.output,
        }
        reason = {StopReason.LENGTH: "max_output_tokens", StopReason.REFUSED: "content_filter"}.get(
            line.stop
        )  # type: ignore[arg-type]  # None is no key
        kind = "response.incomplete" if reason else "response.completed"
        why = {"incomplete_details": {"reason": reason} if reason else None}
        yield sse({"type": kind, "response": {"id": "resp_1", "usage": usage, **why}})


def _said(line: ScriptedAnswer, at: int) -> Iterator[bytes]:
    item: Event = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    where = {"item_id": "msg_1", "output_index": at, "content_index": 0}
    yield sse({"type": "response.output_item.added", "output_index": at, "item": item})
    for part in pieces(line.say):
        yield sse({"type": "response.output_text.delta", **where, "delta": part})
    item["content"] = [{"type": "output_text", "text": line.say, "annotations": []}]
    yield sse({"type": "response.output_item.done", "output_index": at, "item": item})


def _function_call(call: ToolCall, at: int) -> Iterator[bytes]:
    item = {"id": f"fc_{at}", "type": "function_call", "call_id": call.id, "name": call.tool}
    where = {"item_id": item["id"], "output_index": at}
    begun = {**item, "arguments": "", "status": "in_progress"}
    yield sse({"type": "response.output_item.added", "output_index": at, "item": begun})
    for part in pieces(call.arguments):
        yield sse({"type": "response.function_call_arguments.delta", **where, "delta": part})
    yield sse(
        {"type": "response.function_call_arguments.done", **where, "arguments": call.arguments}
    )
    whole = {**item, "arguments": call.arguments, "status": "completed"}
    yield sse({"type": "response.output_item.done", "output_index": at, "item": whole})


def _chat(line: ScriptedAnswer, mark: str) -> Iterator[bytes]:
    yield _chunk({"role": "assistant", "content": ""})
    for part in pieces(line.think):
        yield _chunk({"reasoning_content": part})
    for part in pieces(line.say):
        yield _chunk({"content": part})
    for index, call in enumerate(_calls(line, mark)):
        function = {"name": call.tool, "arguments": ""}
        begun = {"index": index, "id": call.id, "type": "function", "function": function}
        yield _chunk({"tool_calls": [begun]})
        for part in pieces(call.arguments):
            yield _chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    if not line.fail:
        reason = {StopReason.LENGTH: "length", StopReason.REFUSED: "content_filter"}.get(line.stop)  # type: ignore[arg-type]  # None is no key
        yield _chunk({}, reason or ("tool_calls" if line.calls else "stop"))
        usage = {
            "prompt_tokens": line.tokens.input,
            "completion_tokens": line.tokens.output,
            "prompt_tokens_details": {"cached_tokens": line.tokens.cached},
        }
        yield data({"id": "chatcmpl-1", "choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"


def _chunk(delta: Event, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return data({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]})


def _messages(line: ScriptedAnswer, mark: str) -> Iterator[bytes]:
    usage = {
        "input_tokens": line.tokens.input - line.tokens.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": line.tokens.cached,
        "output_tokens": 1,
    }
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    yield sse({"type": "message_start", "message": {**message, "usage": usage}})
    yield sse({"type": "ping"})
    at = 0
    if line.think:
        block = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": part} for part in pieces(line.think)]
        signed = {"type": "signature_delta", "signature": SIGNATURE}
        yield from _block(at, block, [*deltas, signed])
        at += 1
    if line.say:
        deltas = [{"type": "text_delta", "text": part} for part in pieces(line.say)]
        yield from _block(at, {"type": "text", "text": ""}, deltas)
        at += 1
    for call in _calls(line, mark):
        block = {"type": "tool_use", "id": call.id, "name": call.tool, "input": {}}
        parts = pieces(call.arguments)
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
        yield from _block(at, block, deltas)
        at += 1
    if not line.fail:
        reason = {StopReason.LENGTH: "max_tokens", StopReason.REFUSED: "refusal"}.get(line.stop)  # type: ignore[arg-type]  # None is no key
        ended = {"stop_reason": reason or ("tool_use" if line.calls else "end_turn")}
        tokens = {"output_tokens": line.tokens.output}
        yield sse({"type": "message_delta", "delta": ended, "usage": tokens})
        yield sse({"type": "message_stop"})


def _block(at: int, block: Event, deltas: list[Event]) -> Iterator[bytes]:
    yield sse({"type": "content_block_start", "index": at, "content_block": block})
    for delta in deltas:
        yield sse({"type": "content_block_delta", "index": at, "delta": delta})
    yield sse({"type": "content_block_stop", "index": at})
