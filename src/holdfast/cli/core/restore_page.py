"""Lay out what a restore would do: what comes back, what changes, what goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from holdfast.cli.core.changed_page import ChangedFile, path_lines, stat_page
from holdfast.cli.core.look import Look, Tone
from holdfast.nouns import RelativePath, printable

ASK_RESTORE: Final = "Restore this? [y/N] "
_SHOWN_MAX: Final = 200


class Sorted(NamedTuple):
    """Changes by what becomes of a path."""

    comes: tuple[ChangedFile, ...]
    changes: tuple[ChangedFile, ...]
    goes: tuple[ChangedFile, ...]


def sorted_changes(files: Sequence[ChangedFile]) -> Sorted:
    return Sorted(
        comes=tuple(each for each in files if each.before is None),
        changes=tuple(each for each in files if each.before and each.after),
        goes=tuple(each for each in files if each.after is None),
    )


def restore_page(
    files: Sequence[ChangedFile], left: Sequence[RelativePath], checkpoint: str, look: Look
) -> str:
    """What a person is asked about."""
    found = sorted_changes(files)
    page = ""
    for words, part, tone in (
        ("Comes back:", found.comes, Tone.GOOD),
        ("Changes:", found.changes, Tone.CAREFUL),
        ("Goes, because it was made since (--keep-new keeps it):", found.goes, Tone.BAD),
    ):
        if part:
            page += f"{look.paint(words, tone)}\n{_listed(part, checkpoint, look)}"
    if left:
        page += f"Stays as it is:\n{path_lines(left, look)}"
    return page


def _listed(files: Sequence[ChangedFile], checkpoint: str, look: Look) -> str:
    page = stat_page(files[:_SHOWN_MAX], look)
    more = len(files) - _SHOWN_MAX
    if more <= 0:
        return page
    command = f"holdfast checkpoint diff {printable(checkpoint)}"
    return f"{page}{look.signs.more} and {more:,} more; {command} shows all\n"
