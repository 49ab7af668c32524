"""What real providers refuse beyond their format, as judges for a scripted server.

    async with ProviderServer(replies, judge=STRICT["mistral"]) as server: ...

Each judge looks at a request and answers with the provider's own kind of error, or with None.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from tests.parts.provider_server import Request, Status

Judge = Callable[[Request], Status | None]
Json = dict[str, Any]  # Any: JSON, as the APIs define it

SIGNATURE = "c2lnbmVkIGJ5IEdvb2dsZQ=="
PLACEHOLDER = "skip_thought_signature_validator"
_MISTRAL_ID = re.compile(r"[A-Za-z0-9]{9}")


def _error(status: int = 400, **error: object) -> Status:
    return Status(status, body=json.dumps({"error": error}).encode())


def _messages(request: Request) -> list[Json]:
    found: list[Json] = request.json["messages"]
    return found


def _calls(message: Json) -> list[Json]:
    found: list[Json] | None = message.get("tool_calls")
    return found or []


def gemini(request: Request) -> Status | None:
    """Gemini 3: the first call of every step carries a signature; the error comes in a list."""
    for message in _messages(request):
        if not (calls := _calls(message)):
            continue
        extra: Json = calls[0].get("extra_content") or {"google": {}}
        if extra["google"].get("thought_signature") not in (SIGNATURE, PLACEHOLDER):
            words = "Function call is missing a thought_signature in functionCall parts."
            error = {"code": 400, "message": words, "status": "INVALID_ARGUMENT"}
            return Status(400, body=json.dumps([{"error": error}]).encode())
    return None


def mistral(request: Request) -> Status | None:
    """Ids of nine letters; no user after a tool; the last message is a user's or a tool's."""
    before = ""
    for message in _messages(request):
        role = message["role"]
        if (before, role) == ("tool", "user"):
            return _mistral("Unexpected role 'user' after role 'tool'", 3230)
        ids: list[str] = [call["id"] for call in _calls(message)]
        ids += [message["tool_call_id"]] if role == "tool" else []
        if not all(map(_MISTRAL_ID.fullmatch, ids)):
            return _mistral("Tool call id must be a-z, A-Z, 0-9, with a length of 9", 3280)
        before = role
    if before not in ("user", "tool"):
        return _mistral("Expected last role User or Tool for serving", 3230)
    return None


def _mistral(words: str, code: int) -> Status:
    told = {"object": "error", "message": words, "type": "invalid_request_error", "code": code}
    return Status(400, body=json.dumps(told).encode())


def deepseek(request: Request) -> Status | None:
    """Every message with calls carries `reasoning_content`, also when it is empty."""
    for message in _messages(request):
        if _calls(message) and "reasoning_content" not in message:
            words = "The `reasoning_content` in the thinking mode must be passed back to the API."
            return _error(message=words, type="invalid_request_error", code="invalid_request_error")
    return None


def openai_unverified(request: Request) -> Status | None:
    """An organisation that is not verified gets no summaries of reasoning."""
    if "summary" not in request.json.get("reasoning", {}):
        return None
    return _error(
        message="Your organization must be verified to generate reasoning summaries.",
        type="invalid_request_error",
        param="reasoning.summary",
        code="unsupported_value",
    )


def claude_3_5_haiku(request: Request) -> Status | None:
    """At most 8,192 tokens of output, and no thinking."""
    told = request.json
    if told["max_tokens"] > 8_192:
        return _error(type="invalid_request_error", message="max_tokens: 32000 > 8192")
    if "thinking" in told:
        return _error(type="invalid_request_error", message="thinking: not supported")
    return None


def claude(answers: Sequence[Sequence[Json]]) -> Judge:
    """Blocks of the model come back as they were sent, thinking in its place and unmodified."""

    def judge(request: Request) -> Status | None:
        told = [each for each in request.json["messages"] if each["role"] == "assistant"]
        for sent, answer in zip(told, answers, strict=False):
            kinds = [block["type"] for block in answer]
            if [block["type"] for block in sent["content"]] != kinds:
                words = "`thinking` or `redacted_thinking` blocks cannot be modified."
                return _error(type="invalid_request_error", message=words)
        return None

    return judge


def vllm(window: int) -> Judge:
    """A prompt that is too long is refused with numbers, and a word that means nothing."""

    def judge(request: Request) -> Status | None:
        tokens = len(request.body) // 4
        if tokens <= window:
            return None
        words = f"maximum context length is {window} tokens, your request has {tokens} input tokens"
        return _error(message=words, type="BadRequestError", code=400, param="input_tokens")

    return judge


def lm_studio(window: int) -> Judge:
    """The same, as a bare text."""

    def judge(request: Request) -> Status | None:
        tokens = len(request.body) // 4
        if tokens <= window:
            return None
        words = f"Trying to keep the first {tokens} tokens when context overflows (n_ctx: {window})"
        return Status(400, body=json.dumps({"error": words}).encode())

    return judge


def ollama(window: int, seen: list[bool]) -> Judge:
    """A prompt that is too long is cut, and nobody is told; `seen` says of each if it was."""

    def judge(request: Request) -> None:
        seen.append(len(request.body) // 4 > window)

    return judge
