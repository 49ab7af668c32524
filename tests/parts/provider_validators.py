"""Whether a request would be accepted: by the official types, and by the rules they do not show.

    validate(Format.MESSAGES, body)

raises `AssertionError` or pydantic's `ValidationError`. The types are those of the providers' own
SDKs. What the providers' servers refuse beside that (results that do not follow their calls, names
with other letters, empty texts) stands here as code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, TypeGuard

from holdfast.agent.providers.registry import Format

Json = dict[str, Any]  # Any: JSON
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CALL = re.compile(r"[A-Za-z0-9_-]{1,40}")


def validate(form: Format, body: bytes) -> Json:
    """Return the request, read, if its provider would take it."""
    request: Json = json.loads(body)
    _exhaust(_adapter(form).validate_python(_official(form, request)))
    for tool in request.get("tools", []):
        assert _NAME.fullmatch(tool.get("function", tool)["name"]), tool
    {
        Format.RESPONSES: _check_responses,
        Format.CHAT: _check_chat,
        Format.MESSAGES: _check_messages,
    }[form](request)
    return request


def _official(form: Format, request: Json) -> Json:
    """A request without what only others than OpenAI understand."""
    if form is not Format.CHAT:
        return request
    ours = {"reasoning_content", "reasoning"}
    messages: list[Json] = []
    for message in request["messages"]:
        known = {name: value for name, value in message.items() if name not in ours}
        if "tool_calls" in known:
            known["tool_calls"] = [
                {name: value for name, value in call.items() if name != "extra_content"}
                for call in known["tool_calls"]
            ]
        messages.append(known)
    return {**request, "messages": messages}


@cache
def _adapter(form: Format) -> Any:  # Any: pydantic is loaded only here
    """Loading the official packages takes seconds, so it is done for who validates."""
    from pydantic import ConfigDict, TypeAdapter, with_config

    declared: Any  # Any: a TypedDict
    match form:
        case Format.RESPONSES:
            from openai.types.responses import response_create_params as responses

            declared = responses.ResponseCreateParamsStreaming
        case Format.CHAT:
            from openai.types.chat import completion_create_params as chat

            declared = chat.CompletionCreateParamsStreaming
        case Format.MESSAGES:
            from anthropic.types import message_create_params as messages

            declared = messages.MessageCreateParamsStreaming
    return TypeAdapter(with_config(ConfigDict(extra="forbid"))(declared))


def _exhaust(found: Any) -> None:  # Any: whatever pydantic made
    """Look at everything: pydantic validates what is declared as iterable when it is iterated."""
    values: Any = found.values() if hasattr(found, "values") else found  # Any: as above
    if _is_several(values):
        for value in values:
            _exhaust(value)


def _is_several(found: object) -> TypeGuard[Iterable[Any]]:
    return isinstance(found, Iterable) and not isinstance(found, str)


def _check_responses(request: Json) -> None:
    assert request["store"] is False
    open_calls: set[str] = set()
    before = ""
    for item in request["input"]:
        kind = item["type"]
        assert before != "reasoning" or kind != "function_call_output", "a thought leads to nothing"
        assert before != "reasoning" or item.get("role") != "user", "a thought leads to nothing"
        if kind == "message":
            assert item["role"] in {"user", "assistant"}
            _check_texts([item["content"]] if isinstance(item["content"], str) else item["content"])
            assert item["role"] == "assistant" or not open_calls, "a call has no result"
        elif kind == "function_call":
            _check_call(item["call_id"], item["name"], item["arguments"])
            assert item["call_id"] not in open_calls
            open_calls.add(item["call_id"])
        elif kind == "function_call_output":
            assert item["call_id"] in open_calls, "a result has no call"
            open_calls.remove(item["call_id"])
        else:
            assert item["encrypted_content"], "a thought has no proof"
        before = kind
    assert not open_calls, "a call has no result"
    assert before != "reasoning"


def _check_chat(request: Json) -> None:
    assert request["stream_options"] == {"include_usage": True}
    assert request["messages"][0]["role"] == "system"
    assert request.get("tools") != []
    open_calls: set[str] = set()
    for message in request["messages"][1:]:
        if message["role"] == "tool":
            assert message["tool_call_id"] in open_calls, "a result has no call"
            open_calls.remove(message["tool_call_id"])
            continue
        assert not open_calls, "a call has no result"
        if message["role"] == "assistant":
            assert message["content"] or message.get("tool_calls"), "nothing is said"
            for call in message.get("tool_calls", []):
                _check_call(call["id"], call["function"]["name"], call["function"]["arguments"])
                assert call["id"] not in open_calls
                open_calls.add(call["id"])
        else:
            _check_texts([message["content"]])
    assert not open_calls, "a call has no result"


def _check_messages(request: Json) -> None:
    messages = request["messages"]
    roles = [message["role"] for message in messages]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"], roles
    marks = json.dumps(request).count('"cache_control"')
    assert marks <= 4, "too much is to be cached"
    thinking = request.get("thinking", {})
    assert thinking.get("budget_tokens", 0) < request["max_tokens"]
    called: list[str] = []
    seen: set[str] = set()
    for message in messages:
        blocks = message["content"]
        assert blocks, "nothing is said"
        _check_texts([block["text"] for block in blocks if block["type"] == "text"])
        if message["role"] == "assistant":
            called = [block["id"] for block in blocks if block["type"] == "tool_use"]
            for block in blocks:
                if block["type"] == "tool_use":
                    _check_call(block["id"], block["name"], json.dumps(block["input"]))
                    assert block["id"] not in seen, "two calls have one name"
                    seen.add(block["id"])
                if block["type"] == "thinking":
                    assert block["signature"], "a thought has no proof"
        else:
            kinds = [block["type"] for block in blocks]
            results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
            assert kinds == sorted(kinds, key=lambda kind: kind != "tool_result"), "results first"
            assert sorted(results) == sorted(called), "calls and results do not fit"


def _check_call(name: str, tool: str, arguments: str) -> None:
    assert _CALL.fullmatch(name), name
    assert _NAME.fullmatch(tool), tool
    assert isinstance(json.loads(arguments), dict), arguments


def _check_texts(texts: Sequence[Any]) -> None:  # Any: a text, or a part with one
    for text in texts:
        said: str = text if isinstance(text, str) else text["text"]
        assert said.strip(), "nothing is said"
