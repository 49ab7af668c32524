"""The format of Anthropic's Messages."""

from __future__ import annotations

import msgspec

from holdfast.agent.core.transcript import Run, Transcripts, speaks
from holdfast.agent.core.wire_text import arguments, call_id, quoted, tool_name, words
from holdfast.agent.model import (
    Call,
    Choice,
    ModelMessage,
    Prompt,
    Said,
    Thinking,
    ToolMessage,
    ToolSpec,
    UserMessage,
)

PATH = "/messages"
VERSION = "2023-06-01"
OUTPUT_MAX = 32_000  # tokens, where nobody says how many: the format wants a number
REDACTED = "redacted:"  # before a proof that stands for thoughts which nobody may see
_BUDGETS = {"minimal": 1_024, "low": 4_096, "medium": 10_240, "high": 20_480}
_BUDGET_MOST = 30_720
_BY_BUDGET = (
    *("claude-3", "claude-haiku-4-5"),
    *("claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2", "claude-opus-4-5"),
    *("claude-sonnet-4-0", "claude-sonnet-4-2", "claude-sonnet-4-5"),
)
_CACHED = b',"cache_control":{"type":"ephemeral"}'
_GO_ON = b'{"role":"user","content":[{"type":"text","text":"(go on)"}]}'


class MessagesPen:
    """Writes messages as content blocks; all that stands between two answers is one message."""

    opening = b'{"role":"user","content":['
    closing = b"]}"
    between = b"," + _GO_ON

    def __init__(self, provider: str) -> None:
        self._provider = provider

    def spoken(self, message: ModelMessage) -> bytes:
        """Thoughts of its own, text and calls, in this order."""
        own = message.thinking if message.provider == self._provider else ()
        blocks = [_thinking(each) for each in own if each.proof]
        if message.text.strip():
            # Text at the very end of what the model said may not end in white space.
            blocks.append(b'{"type":"text","text":' + quoted(message.text.rstrip()) + b"}")
        blocks += [_tool_use(call) for call in message.calls]
        return b'{"role":"assistant","content":[' + b",".join(blocks) + b"]}"

    def told(self, message: UserMessage) -> bytes:
        """A block of text."""
        return b'{"type":"text","text":' + words(message.text) + b"}"

    def returned(self, message: ToolMessage) -> bytes:
        """A result."""
        return b"".join(
            (
                b'{"type":"tool_result","tool_use_id":' + quoted(call_id(message.call)),
                b',"content":' + words(message.text),
                b',"is_error":true}' if message.is_error else b"}",
            )
        )


class MessagesWriter:
    """Writes prompts as bodies of requests, and of each conversation only what is new.

    What was said up to the last message is marked to be cached, and so is what was said up to the
    one before: the provider looks for what it has cached only a few blocks back.
    """

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._transcripts = Transcripts(MessagesPen(provider))
        self._tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"")

    def body(self, choice: Choice, prompt: Prompt) -> bytes:
        """The whole body of a request."""
        limit = prompt.output_max or OUTPUT_MAX
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
                    msgspec.json.encode(options)[:-1],
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

    def _is_foreign(self, said: tuple[Said, ...]) -> bool:
        """Whether the model goes on with calls of another's, whose thoughts it was not given."""
        last = next((each for each in reversed(said) if speaks(each)), None)
        message = last.message if last else None
        return isinstance(message, ModelMessage) and bool(
            message.calls and message.provider != self._provider
        )


def _thought(choice: Choice, limit: int, *, is_foreign: bool) -> dict[str, object]:
    """How hard to think, in the words that this model understands."""
    if not choice.effort or is_foreign:
        return {}
    if choice.effort == "none":
        return {"thinking": {"type": "disabled"}}
    if not choice.model.startswith(_BY_BUDGET):
        thinking = {"type": "adaptive", "display": "summarized"}
        effort = {"minimal": "low"}.get(choice.effort, choice.effort)
        return {"thinking": thinking, "output_config": {"effort": effort}}
    budget = min(_BUDGETS.get(choice.effort, _BUDGET_MOST), limit - 1)
    return {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget >= 1_024 else {}


def _system(text: str) -> bytes:
    if not text.strip():
        return b""
    return b',"system":[{"type":"text","text":' + quoted(text) + _CACHED + b"}]"


def _marked(wire: memoryview, runs: list[Run]) -> list[bytes | memoryview]:
    """The messages, from the user's to the user's, with the marks of what is to be cached."""
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


def _tool_use(call: Call) -> bytes:
    return b"".join(
        (
            b'{"type":"tool_use","id":' + quoted(call_id(call.id)),
            b',"name":' + quoted(tool_name(call.tool)),
            b',"input":' + arguments(call.arguments) + b"}",
        )
    )
