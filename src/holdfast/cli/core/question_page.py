"""Decide how Codex's questions are put to a person, and what their answers mean.

What is asked for is shown exactly, hidden characters and all, each line of it behind a bar: no
text can pass for a question of ours, or for the end of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from json import dumps

from holdfast.cli.core.look import Look, Tone
from holdfast.codex.model import (
    Approval,
    CommandApproval,
    Decision,
    FileChangeApproval,
    InputApproval,
    PermissionsApproval,
)
from holdfast.nouns import printable

CHOICES = "[y] yes  [a] yes, for this session  [n] no  [c] no, and end the turn: "
CHOICES_AGAIN = "Please answer y, a, n or c: "
LINES_MOST, CHARACTERS_MOST = 200, 20_000  # who wants to see more can say no, and ask for it
_END, _TAB = "\n", "\t"
_DECISIONS = {
    "y": Decision.ACCEPT,
    "a": Decision.ACCEPT_FOR_SESSION,
    "n": Decision.DECLINE,
    "c": Decision.CANCEL,
}

Options = tuple[tuple[str, str], ...]  # labels, and what each means
Permission = CommandApproval | FileChangeApproval | PermissionsApproval


def decision_of(line: str) -> Decision | None:
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
    """What is asked for, in a few words."""
    match approval:
        case CommandApproval(host=host) if host:
            return f"reach {host}"
        case CommandApproval(command=command):
            return f"run {command}"
        case FileChangeApproval(changes=changes):
            return f"change {', '.join(change.path for change in changes) or 'files'}"
        case PermissionsApproval():
            return "get more permissions"
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
