"""Lay out what became of a transaction that was cut short, for a person and for a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.cli.core.changed_page import path_lines
from holdfast.cli.core.draft_page import SCHEMA
from holdfast.cli.core.look import Look, Tone
from holdfast.nouns import RelativePath, printable
from holdfast.workbench.model import Committed


@dataclass(frozen=True, slots=True, kw_only=True)
class Righted:
    """Something that was found half done, and is not any more."""

    what: str  # the project, or the id of a draft
    is_finished: bool  # else it was undone
    theirs: tuple[RelativePath, ...] = ()
    rescued: tuple[RelativePath, ...] = ()
    commit: Committed | None = None  # the one that it was to make


def recovered_page(found: Sequence[Righted], look: Look) -> str:
    """What was finished and what was undone; nothing if nothing was half done."""
    return "".join(_one(each, look) for each in found)


def recovered_record(found: Sequence[Righted]) -> dict[str, object]:
    """The same for a program."""
    return {"schema": SCHEMA, "type": "recovery", "recovered": righted_records(found)}


def righted_records(found: Sequence[Righted]) -> list[dict[str, object]]:
    """Each of them for a program."""
    return [
        {
            "what": each.what,
            "way": "finished" if each.is_finished else "undone",
            "changedMeanwhile": list(map(str, each.theirs)),
            "rescued": list(map(str, each.rescued)),
            **_commit_record(each.commit),
        }
        for each in found
    ]


def _one(each: Righted, look: Look) -> str:
    sign = look.paint(look.signs.careful, Tone.CAREFUL)
    where = "the project" if each.what == "project" else printable(each.what)
    how = "was finished" if each.is_finished else "was undone: nothing of it is left"
    lines = look.wrap(f"{sign} An interrupted change of {where} {how}.", indent=0)
    page = "".join(f"{line}\n" for line in lines)
    for paths, words in (
        (each.theirs, "Changed by somebody else, and left so:"),
        (each.rescued, "What was written here meanwhile is in the store:"),
    ):
        if paths:
            page += f"  {words}\n{path_lines(paths, look)}"
    return page + _commit_line(each.commit, look)


def _commit_record(commit: Committed | None) -> dict[str, object]:
    if commit is None or commit.id is None:
        return {}
    return {
        "commit": None if commit.problem else commit.id,
        "commitProblem": commit.problem or None,
    }


def _commit_line(commit: Committed | None, look: Look) -> str:
    if commit is None or commit.id is None:
        return ""
    text = (
        f"Its commit was not made: {printable(commit.problem)}. Commit the files with git."
        if commit.problem
        else f"Its commit is {commit.id[:12]}."
    )
    return "".join(f"{line}\n" for line in look.wrap(text, indent=2))
