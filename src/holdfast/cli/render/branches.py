"""Lay out the commits of a draft that become a branch, for a person and for a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.cli.render.changes import note_lines
from holdfast.cli.render.drafts import SCHEMA
from holdfast.cli.render.style import Look, Tone
from holdfast.nouns import printable
from holdfast.workbench.model import ChangeNote

ASK_BRANCH = "Take these commits? [y/N] "
_FILES_MAX = 100
_ID = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCommit:
    id: str
    author: str
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFile:
    """A file that commits change; without numbers it is not text. `notes` are as in a diff."""

    path: str
    added: int | None
    removed: int | None
    notes: tuple[ChangeNote, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownBranch:
    """A branch, the newest of its commits and the files that they change."""

    draft: str
    branch: str
    tip: str
    count: int
    commits: Sequence[ShownCommit]
    files: Sequence[ShownFile]
    submodules: Sequence[str]
    is_there: bool


def branch_page(shown: ShownBranch, look: Look) -> str:
    """What a branch would bring."""
    return "".join(_lines(shown, look))


def branch_taken_page(shown: ShownBranch, look: Look) -> str:
    """What a branch has brought, and how to look at it and to take it back."""
    name, sign = printable(shown.branch), look.paint(look.signs.good, Tone.GOOD)
    head = (
        f"Branch {name} is there already"
        if shown.is_there
        else f"Branch {name}: {_counted(shown.count, 'commit')}"
    )
    lines = f"{sign} {look.paint(head, Tone.STRONG)}\n    {shown.tip[:_ID]}\n"
    for each in shown.submodules:
        lines += f"    also in the submodule {printable(each)}\n"
    lines += f"  {look.signs.leads_to} No file was changed. Look at it, merge it, or remove it:\n"
    quoted = _quoted(name)
    return lines + (
        f"    git log -p HEAD..{quoted}\n    git merge {quoted}\n    git branch -D {quoted}\n"
    )


def branch_record(shown: ShownBranch) -> dict[str, object]:
    """The same for a program."""
    return {
        "schema": SCHEMA,
        "type": "branch",
        "draft": shown.draft,
        "branch": shown.branch,
        "commit": shown.tip,
        "count": shown.count,
        "commits": [
            {"id": each.id, "author": each.author, "subject": each.subject}
            for each in shown.commits
        ],
        "files": [
            {
                "path": each.path,
                "added": each.added,
                "removed": each.removed,
                "notes": [{"text": note.text, "loud": note.is_loud} for note in each.notes],
            }
            for each in shown.files
        ],
        "submodules": list(shown.submodules),
        "wasThere": shown.is_there,
    }


def _lines(shown: ShownBranch, look: Look) -> Iterator[str]:
    yield f"Branch {look.paint(printable(shown.branch), Tone.STRONG)} would have:\n"
    for each in shown.commits:
        yield f"  {each.id[:_ID]}  {printable(each.subject)}  ({printable(each.author)})\n"
    if shown.count > len(shown.commits):
        yield f"  … and {shown.count - len(shown.commits):,} older\n"
    yield f"{_counted(len(shown.files), 'file')} changed:\n"
    # Long lists are truncated, except for files that other programs may execute.
    loud = [each for each in shown.files[_FILES_MAX:] if any(note.is_loud for note in each.notes)]
    for file in [*shown.files[:_FILES_MAX], *loud]:
        is_text = file.added is not None and file.removed is not None
        numbers = f"+{file.added} -{file.removed}" if is_text else "binary"
        yield f"  {printable(file.path)}  {numbers}\n"
        yield from (f"{line}\n" for line in note_lines(file.notes, look))
    left = len(shown.files) - _FILES_MAX - len(loud)
    if left > 0:
        yield f"  {look.signs.more} and {left:,} more\n"
    for path in shown.submodules:
        yield f"  with commits of the submodule {printable(path)}\n"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _quoted(word: str) -> str:
    is_plain = all(each.isalnum() or each in "-_./" for each in word)
    return word if is_plain else "'" + word.replace("'", "'\\''") + "'"
