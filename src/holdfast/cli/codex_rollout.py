"""Read what Codex writes down of a conversation, a line of its rollout at a time.

Unknown records are skipped; a line that is not JSON, or has another shape than
its type has, raises `msgspec.DecodeError`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import msgspec

from holdfast.cli.foreign_transcripts import (
    About,
    Asked,
    Did,
    Over,
    Step,
    moment,
    output,
    shortened,
)
from holdfast.runners.model import TextCompleted, ThinkingCompleted, ToolStarted, TurnEnding

_STATUS: Final = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,10})$", re.MULTILINE)
_STATUS_WITHIN: Final = 400  # characters at the beginning of an output
_TITLE_MOST: Final = 200
_ENDINGS: Final = {
    "task_complete": TurnEnding.COMPLETED,
    "turn_complete": TurnEnding.COMPLETED,
    "turn_aborted": TurnEnding.INTERRUPTED,
}


class _Line(msgspec.Struct):
    type: str = ""
    timestamp: str = ""
    payload: msgspec.Raw = msgspec.Raw(b"{}")


class _Typed(msgspec.Struct):
    type: str = ""


class _Meta(msgspec.Struct):
    id: str
    cwd: str
    timestamp: str = ""


class _Part(msgspec.Struct):
    text: str = ""


class _Message(msgspec.Struct):
    role: str = ""
    id: str | None = None
    content: tuple[_Part, ...] = ()


class _Reasoning(msgspec.Struct):
    id: str | None = None
    summary: tuple[_Part, ...] = ()


class _Call(msgspec.Struct):
    call_id: str
    name: str = "shell"
    arguments: str = ""
    input: str = ""


class _Command(msgspec.Struct):
    cmd: str = ""
    command: str | tuple[str, ...] = ""


class _Output(msgspec.Struct):
    call_id: str
    output: str | tuple[_Part, ...] | dict[str, object] = ""


class _UserMessage(msgspec.Struct):
    message: str = ""


class _Completed(msgspec.Struct):
    item: msgspec.Raw = msgspec.Raw(b"{}")


def about(line: bytes) -> About | None:
    """What the conversation is called, if this line says so."""
    read = msgspec.json.decode(line, type=_Line)
    if read.type != "session_meta":
        return None
    meta = msgspec.json.decode(read.payload, type=_Meta)
    return About(meta.id, meta.cwd, moment(meta.timestamp or read.timestamp))


def steps(line: bytes) -> Iterator[Step]:
    """The events of one line."""
    read = msgspec.json.decode(line, type=_Line)
    at_ms = moment(read.timestamp)
    match read.type:
        case "event_msg":
            yield from _event(read.payload, at_ms)
        case "response_item":
            yield from _item(read.payload, at_ms)
        case _:
            pass


def _event(payload: msgspec.Raw, at_ms: int) -> Iterator[Step]:
    """What the person wanted, and that a turn is over."""
    kind = msgspec.json.decode(payload, type=_Typed).type
    match kind:
        case "user_message":
            yield Asked(msgspec.json.decode(payload, type=_UserMessage).message, at_ms)
        case "item_completed":
            item = msgspec.json.decode(payload, type=_Completed).item
            if msgspec.json.decode(item, type=_Typed).type == "UserMessage":
                yield Asked(_joined(msgspec.json.decode(item, type=_Message).content), at_ms)
        case _ if kind in _ENDINGS:
            yield Over(_ENDINGS[kind], at_ms)
        case _:
            pass


def _item(payload: msgspec.Raw, at_ms: int) -> Iterator[Step]:
    """Messages and actions of the agent; messages of the role user may be Codex's own context."""
    match msgspec.json.decode(payload, type=_Typed).type:
        case "message":
            message = msgspec.json.decode(payload, type=_Message)
            if message.role == "assistant" and (text := _joined(message.content)):
                yield Did(TextCompleted(message.id or "", shortened(text)), at_ms)
        case "reasoning":
            reasoning = msgspec.json.decode(payload, type=_Reasoning)
            if text := _joined(reasoning.summary):
                yield Did(ThinkingCompleted(reasoning.id or "", shortened(text)), at_ms)
        case "function_call" | "custom_tool_call":
            yield Did(_started(msgspec.json.decode(payload, type=_Call)), at_ms)
        case "function_call_output" | "custom_tool_call_output":
            ended = msgspec.json.decode(payload, type=_Output)
            text = _output_text(ended.output)
            found = _STATUS.search(text[:_STATUS_WITHIN])
            status = int(found[1]) if found else None
            yield Did(output(ended.call_id, text, is_ok=not status, status=status), at_ms)
        case _:
            pass


def _started(call: _Call) -> ToolStarted:
    given: dict[str, object] = {"input": call.arguments or call.input}
    title = call.name
    with suppress(msgspec.DecodeError):
        given = msgspec.json.decode(call.arguments, type=dict[str, object])
        meant = msgspec.json.decode(call.arguments, type=_Command)
        command = meant.cmd or meant.command or title
        title = command if isinstance(command, str) else " ".join(command)
    return ToolStarted(call.call_id, call.name, title[:_TITLE_MOST], given)


def _output_text(told: str | tuple[_Part, ...] | dict[str, object]) -> str:
    if isinstance(told, str):
        return told
    return str(told.get("content", "")) if isinstance(told, dict) else _joined(told)


def _joined(parts: tuple[_Part, ...]) -> str:
    return "\n".join(part.text for part in parts if part.text)
