"""Lay out what became of conflicts between a draft and its project."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.cli.core.changed_page import path_lines
from holdfast.cli.core.draft_page import SCHEMA
from holdfast.cli.core.look import Look, Tone
from holdfast.nouns import RelativePath, printable


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMerge:
    """The paths of a draft by what became of their conflicts."""

    draft: str
    merged: tuple[RelativePath, ...] = ()
    marked: tuple[RelativePath, ...] = ()
    taken: tuple[RelativePath, ...] = ()
    unresolved: tuple[RelativePath, ...] = ()


def merge_page(shown: ShownMerge, look: Look) -> str:
    """What was resolved, what is to be edited, what is still open, and what to do next."""
    return "".join(_lines(shown, look))


def merge_record(shown: ShownMerge) -> dict[str, object]:
    """The same for a program."""
    return {
        "schema": SCHEMA,
        "type": "merge",
        "draft": shown.draft,
        "merged": list(map(str, shown.merged)),
        "marked": list(map(str, shown.marked)),
        "taken": list(map(str, shown.taken)),
        "unresolved": list(map(str, shown.unresolved)),
    }


def _lines(shown: ShownMerge, look: Look) -> Iterator[str]:
    good, careful = look.paint(look.signs.good, Tone.GOOD), look.paint(look.signs.careful, Tone.BAD)
    if not (shown.merged or shown.marked or shown.taken or shown.unresolved):
        yield f"{good} Nothing to merge: no file was changed on both sides\n"
        return
    for sign, paths, words in (
        (good, shown.merged, "Merged in the draft"),
        (good, shown.taken, "Resolved"),
        (careful, shown.marked, "Merged with conflict markers, which must be edited"),
        (careful, shown.unresolved, "Not merged: choose one version, with --ours or --theirs"),
    ):
        if paths:
            yield f"{sign} {words}:\n{path_lines(paths, look)}"
    yield from _next(shown, look)


def _next(shown: ShownMerge, look: Look) -> Iterator[str]:
    draft = printable(shown.draft)
    yield f"  {look.signs.leads_to} Next:\n"
    if shown.marked:
        yield f"    holdfast draft run --draft {draft} --tty -- $EDITOR PATH\n"
        yield f'    holdfast ask --draft {draft} "Resolve the conflict markers"\n'
    if shown.unresolved:
        yield f"    holdfast draft merge --draft {draft} --theirs PATH\n"
    yield f"    holdfast draft diff --draft {draft}, then holdfast publish --draft {draft}\n"
