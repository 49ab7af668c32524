"""Decide what a person sees of a turn: what Codex says, and a line for what it does.

Events come as they are on Codex's wire. What is unknown or odd is not shown; nothing that is shown
can steer the terminal.

Decide how Codex's questions are put to a person, and what their answers mean.

An approval request is shown exactly, with escaped control characters, each line behind a bar: no
text can pass for a question of ours, or for the end of one.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from json import dumps

from holdfast.cli.model import Json
from holdfast.cli.render.style import Look, Tone
from holdfast.codex.model import (
    Approval,
    ApprovalDecision,
    CommandApproval,
    FileChangeApproval,
    InputApproval,
    PermissionsApproval,
    ToolApproval,
)
from holdfast.nouns import cut, printable, prose

_LONG = 2000  # milliseconds after which it is worth saying how long a command took
_SHELL_WORDS = 3  # a shell, its flag, and the script that was asked for
_DID = {"add": "added", "delete": "deleted", "update": "changed"}


@dataclass(frozen=True, slots=True)
class Said:
    """Text of the answer, for standard output."""

    text: str


@dataclass(frozen=True, slots=True)
class Noted:
    """A line about what happens, for standard error."""

    line: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of the answer: no line of it is left without its end."""


Piece = Said | Noted | Ended


class TurnPage:
    """Turns the events of one turn into what is shown of them, each message once and whole."""

    def __init__(self, look: Look, *, cwd: str) -> None:
        self._look = look
        self._beneath = cwd.rstrip("/") + "/"
        self._shown: dict[str, list[str]] = {}  # of each message that goes on, bit by bit

    def take(self, method: str, params: Json) -> list[Piece]:
        """What to show for one event."""
        match method, params:
            case "item/agentMessage/delta", {"itemId": str(item), "delta": str(text)}:
                self._shown.setdefault(item, []).append(text)
                return [Said(prose(text))]
            case "item/completed", {
                "item": {"type": "agentMessage", "id": item, "text": str(text)}
            }:
                return [Said(prose(self._rest(str(item), text)))]
            case "turn/completed", _:
                self._shown.clear()
                return [Ended()]
            case "item/started", {"item": item}:
                return [*self._begun(item)]
            case "item/completed", {"item": item}:
                return [*self._done(item)]
            case _:
                return [*self._happened(method, params)]

    def _rest(self, item: str, text: str) -> str:
        """The part of a message that was not streamed; all of it if the streamed text differs."""
        shown = "".join(self._shown.pop(item, []))
        rest = text[len(shown) :] if text.startswith(shown) else f"\n{text}"
        return rest if (rest or shown).endswith("\n") or not text else f"{rest}\n"

    def _begun(self, item: Json) -> Iterator[Piece]:
        match item:
            case {"type": "commandExecution", "command": str(command)}:
                yield self._line(f"$ {script_of(command)}")
            case {"type": "mcpToolCall", "server": str(server), "tool": str(tool)}:
                yield self._line(f"{self._look.signs.leads_to} {server}: {tool}")
            case {"type": "webSearch", "query": str(query)} if query:
                yield self._line(f"{self._look.signs.leads_to} web search: {query}")
            case {"type": "contextCompaction"}:
                yield self._careful("the conversation is made shorter, so that it fits the model")
            case _:
                pass

    def _done(self, item: Json) -> Iterator[Piece]:
        match item:
            case {"type": "commandExecution", "command": str(command), "status": "declined"}:
                yield self._careful(f"not run: {script_of(command)}")
            case {"type": "commandExecution", "command": str(command), "status": "failed", **more}:
                code = more.get("exitCode")
                what = "not run" if code is None else f"exit {code}"
                yield self._bad(f"{what}: {script_of(command)}")
            case {"type": "commandExecution", "durationMs": int(spent), "command": str(command)}:
                if spent >= _LONG:
                    yield self._good(f"{spent / 1000:.0f} s: {script_of(command)}")
            case {"type": "fileChange", "status": str(status), "changes": [*changes]}:
                for change in changes:
                    yield from self._changed(status, change)
            case {"type": "mcpToolCall", "status": "failed", "server": str(server), "tool": tool}:
                yield self._bad(f"failed: {server}: {tool}")
            case _:
                pass

    def _changed(self, status: str, change: Json) -> Iterator[Piece]:
        match change:
            case {"path": str(path), "kind": {"type": str(kind)}}:
                name = path.removeprefix(self._beneath)
                if status == "completed":
                    yield self._good(f"{_DID.get(kind, kind)} {name}")
                else:
                    yield self._careful(f"not {_DID.get(kind, kind)} ({status}): {name}")
            case _:
                pass

    def _happened(self, method: str, params: Json) -> Iterator[Piece]:
        match method, params:
            case "error", {"willRetry": True, "error": {"message": str(text), **more}}:
                details = more.get("additionalDetails")
                yield self._careful(f"{text} ({details})" if details else text)
            case "warning", {"message": str(text)}:
                yield self._careful(text)
            case "model/rerouted", {"fromModel": str(before), "toModel": str(after)}:
                yield self._careful(f"the model is now {after}, not {before}")
            case _:
                pass

    def _good(self, text: str) -> Piece:
        return self._line(text, self._look.paint(self._look.signs.good, Tone.GOOD))

    def _bad(self, text: str) -> Piece:
        return self._line(text, self._look.paint(self._look.signs.bad, Tone.BAD))

    def _careful(self, text: str) -> Piece:
        return self._line(text, self._look.paint(self._look.signs.careful, Tone.CAREFUL))

    def _line(self, text: str, sign: str = "") -> Piece:
        room = self._look.width - 2 - (2 if sign else 0)
        shown = cut(printable(text), room, more=self._look.signs.more)
        return Noted("  " + (f"{sign} " if sign else "") + self._look.paint(shown, Tone.QUIET))


def script_of(command: str) -> str:
    """What a shell is asked to run, without the shell around it."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    is_wrapped = len(words) == _SHELL_WORDS and words[0].endswith("sh") and words[1] == "-lc"
    return words[2] if is_wrapped else command


CHOICES = "[y] yes  [a] yes, for this session  [n] no  [c] no, and end the turn: "
CHOICES_AGAIN = "Please answer y, a, n or c: "
LINES_MOST, CHARACTERS_MOST = 200, 20_000  # who wants to see more can say no, and ask for it
_END, _TAB = "\n", "\t"
_DECISIONS = {
    "y": ApprovalDecision.ACCEPT,
    "a": ApprovalDecision.ACCEPT_FOR_SESSION,
    "n": ApprovalDecision.DECLINE,
    "c": ApprovalDecision.CANCEL,
}

Options = tuple[tuple[str, str], ...]  # labels, and what each means
Permission = CommandApproval | FileChangeApproval | PermissionsApproval | ToolApproval


def decision_of(line: str) -> ApprovalDecision | None:
    """What a person means by a line; None when it has no meaning."""
    return _DECISIONS.get(line.strip().lower())


def question_page(approval: Permission, look: Look) -> str:
    """What Codex asks for, and why."""
    lines = [*_barred(_asked(approval))]
    if approval.reason:
        lines.append(f"because: {printable(approval.reason)}")
    return _page(_head(approval), lines, look)


def input_page(question: str, options: Options, look: Look) -> str:
    """One of Codex's own questions, with the answers that it offers."""
    lines = [*_barred(question)]
    for number, (label, description) in enumerate(options, start=1):
        lines.append(printable(f"{number}  {label}: {description}"))
    return _page("Codex wants to know", lines, look)


def input_prompt(options: Options) -> str:
    """How to answer one of Codex's own questions."""
    return "A number, or your own words: " if options else "Your answer: "


def input_answer(line: str, options: Options) -> str:
    """What a person answers: an option by its number, or their own words."""
    word = line.strip()
    if word.isascii() and word.isdigit() and 1 <= int(word) <= len(options):
        return options[int(word) - 1][0]
    return word


def subject(approval: Approval) -> str:
    """A short description of an approval request."""
    match approval:
        case CommandApproval(host=host) if host:
            return f"reach {host}"
        case CommandApproval(command=command):
            return f"run {command}"
        case FileChangeApproval(changes=changes):
            return f"change {', '.join(change.path for change in changes) or 'files'}"
        case PermissionsApproval():
            return "get more permissions"
        case ToolApproval(server=server):
            return f"call a tool of the MCP server {server}"
        case InputApproval():
            return "ask you something"


def _page(head: str, lines: list[str], look: Look) -> str:
    sign = look.paint("?", Tone.CAREFUL)
    rest = "".join(f"  {line}\n" for line in lines)
    return f"{sign} {look.paint(head, Tone.STRONG)}\n{rest}"


def _head(approval: Permission) -> str:
    match approval:
        case CommandApproval(host=host) if host:
            return f"Codex wants to reach {printable(host)}"
        case CommandApproval(cwd=cwd):
            return f"Codex wants to run this in {printable(cwd)}" if cwd else "Codex wants to run"
        case FileChangeApproval():
            return "Codex wants to change files"
        case PermissionsApproval(cwd=cwd):
            return f"Codex wants more permissions in {printable(cwd)}"
        case ToolApproval(server=server):
            return f"Codex wants to call a tool of the MCP server {printable(server)}"


def _asked(approval: Permission) -> str:
    match approval:
        case CommandApproval(command=command):
            return command
        case FileChangeApproval(changes=changes):
            heads = (_named(each.kind, each.path) for each in changes)
            diffs = (each.diff.rstrip(_END) for each in changes)
            return _END.join(f"{head}\n{diff}" for head, diff in zip(heads, diffs, strict=True))
        case PermissionsApproval(permissions=permissions):
            return dumps(permissions, indent=2)
        case ToolApproval(arguments=arguments):
            return dumps(arguments, indent=2)


def _named(kind: object, path: str) -> str:
    word = type(kind).__name__.removesuffix("PatchChangeKind").lower()
    target = getattr(kind, "move_path", None)
    return f"{word} {path} to {target}" if target else f"{word} {path}"


def _barred(text: str) -> Iterator[str]:
    shown = text[:CHARACTERS_MOST].split(_END)[:LINES_MOST]
    yield from (f"| {printable(line, keep=_TAB)}" for line in shown)
    left_out = len(text) - len(_END.join(shown))
    if left_out:
        yield f"and {left_out} more characters, which are not shown"
