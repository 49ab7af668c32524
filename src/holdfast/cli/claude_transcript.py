"""Read what Claude Code writes down of a conversation, a line of its transcript at a time.

The lines are read in the order in which they were written; what its helpers said among themselves,
and what it told itself in the person's name, is left out. A line of another shape than its type
has raises `msgspec.DecodeError`.
"""

from __future__ import annotations

from collections.abc import Iterator
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

_INTERRUPTED: Final = "[Request interrupted by user"
_TITLE_MOST: Final = 200


class _Line(msgspec.Struct, rename="camel"):
    type: str = ""
    uuid: str = ""
    timestamp: str = ""
    session_id: str = ""
    cwd: str = ""
    is_sidechain: bool = False
    is_meta: bool = False
    message: msgspec.Raw = msgspec.Raw(b"{}")


class _Part(msgspec.Struct):
    type: str = ""
    text: str = ""
    thinking: str = ""
    id: str = ""
    name: str = ""
    tool_use_id: str = ""
    is_error: bool | None = None
    input: dict[str, object] = {}
    content: msgspec.Raw = msgspec.Raw(b'""')


class _Message(msgspec.Struct):
    content: str | tuple[_Part, ...] = ""


class _Text(msgspec.Struct):
    text: str = ""


def about(line: bytes) -> About | None:
    """What the conversation is called, if this line says so."""
    read = msgspec.json.decode(line, type=_Line)
    if read.type not in {"user", "assistant"} or not read.session_id or not read.cwd:
        return None
    return About(read.session_id, read.cwd, moment(read.timestamp))


def steps(line: bytes) -> Iterator[Step]:
    """The events of one line."""
    read = msgspec.json.decode(line, type=_Line)
    if read.type not in {"user", "assistant"} or read.is_sidechain or read.is_meta:
        return
    at_ms = moment(read.timestamp)
    content = msgspec.json.decode(read.message, type=_Message).content
    parts = (_Part(type="text", text=content),) if isinstance(content, str) else content
    for part in parts:
        is_person = read.type == "user"
        step = _of_person(part, at_ms) if is_person else _of_agent(part, read.uuid, at_ms)
        if step is not None:
            yield step


def _of_person(part: _Part, at_ms: int) -> Step | None:
    match part.type:
        case "text" if part.text.startswith(_INTERRUPTED):
            return Over(TurnEnding.INTERRUPTED, at_ms)
        case "text" if part.text:
            return Asked(part.text, at_ms)
        case "tool_result":
            told = output(part.tool_use_id, _result(part.content), is_ok=not part.is_error)
            return Did(told, at_ms)
        case _:
            return None


def _of_agent(part: _Part, item: str, at_ms: int) -> Step | None:
    match part.type:
        case "text" if part.text:
            return Did(TextCompleted(item, shortened(part.text)), at_ms)
        case "thinking" if part.thinking:
            return Did(ThinkingCompleted(item, shortened(part.thinking)), at_ms)
        case "tool_use":
            command = part.input.get("command") or part.input.get("file_path") or part.name
            return Did(
                ToolStarted(part.id, part.name, str(command)[:_TITLE_MOST], part.input), at_ms
            )
        case _:
            return None


def _result(content: msgspec.Raw) -> str:
    told = msgspec.json.decode(content, type=str | tuple[_Text, ...])
    return told if isinstance(told, str) else "\n".join(part.text for part in told if part.text)
