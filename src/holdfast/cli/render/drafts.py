"""Lay out the drafts of a project, for a person and for a program."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime

from holdfast.cli.render.style import Look, Tone
from holdfast.cli.render.table import age
from holdfast.nouns import cut, printable
from holdfast.workbench.model import Draft, DraftMode, Revision

SCHEMA = 1
NARROW = 60  # below this an id gets a line of its own
_CAUSE_LEAST = 10
_APART = {
    DraftMode.OVERLAY: "a layer over the project, at its own path",
    DraftMode.REFLINK: "a copy that shares what is the same",
    DraftMode.COPY: "a copy",
}
assert _APART.keys() == set(DraftMode)


def drafts_page(drafts: Sequence[Draft], look: Look, *, now: float) -> str:
    """A line for each: how to name it, how it is kept apart, since when, how far it has come."""
    lines: list[str] = []
    for each in drafts:
        when = look.paint(f"{age(each.at_ms / 1000, now=now):<10}", Tone.QUIET)
        count = len(each.revisions)
        facts = f"{each.mode.value:<7}  {when}  {count} revision{'' if count == 1 else 's'}"
        between = "\n  " if look.width < NARROW else "  "
        lines.append(f"{printable(each.id)}{between}{facts}\n")
    return "".join(lines)


def opened_page(draft: Draft, look: Look) -> str:
    """That a draft was made, and what it is."""
    sign = look.paint(look.signs.good, Tone.GOOD)
    lines = [f"{sign} {look.paint(printable(draft.id), Tone.STRONG)}"]
    lines += look.wrap(f"{_APART[draft.mode]}: {printable(draft.project)}", indent=2)
    if draft.reason:
        lines += look.wrap(f"A better mode is not available: {printable(draft.reason)}.", indent=2)
    if draft.left_out:
        count = len(draft.left_out)
        lines += look.wrap(f"{count:,} path(s) could not be copied and are not in it.", indent=2)
    lines += look.wrap(f"{look.signs.leads_to} holdfast draft run -- COMMAND", indent=2)
    return "\n".join(lines) + "\n"


def undone_page(draft: Draft, revision: Revision, look: Look) -> str:
    """What state a draft is in after going back, and how to take that back."""
    sign = look.paint(look.signs.good, Tone.GOOD)
    back = f"revision {revision.back_to}" if revision.back_to else "the project as it is"
    lines = [f"{sign} {look.paint(f'Back to {back}', Tone.STRONG)}", f"  {printable(draft.id)}"]
    if revision.number > 1:
        words = f"{look.signs.leads_to} To take this back:"
        lines += [f"  {words}", f"    holdfast draft undo --to {revision.number - 1}"]
    return "\n".join(lines) + "\n"


def revisions_page(revisions: Sequence[Revision], look: Look, *, now: float, most: int = 5) -> str:
    """The last few states that one can go back to, the newest first."""
    room = max(look.width - 21, _CAUSE_LEAST)
    lines = [
        f"    {each.number:>3}  "
        f"{look.paint(f'{age(each.at_ms / 1000, now=now):<10}', Tone.QUIET)}  "
        f"{cut(printable(each.cause), room, more=look.signs.more)}\n"
        for each in sorted(revisions, key=lambda each: -each.number)[:most]
    ]
    return "".join(lines)


def cause_of(words: Sequence[str]) -> str:
    """What a revision after a command says: the command."""
    return shlex.join(words)


def draft_record(draft: Draft) -> dict[str, object]:
    """A draft for a program."""
    return {
        "schema": SCHEMA,
        "type": "draft",
        "id": draft.id,
        "project": draft.project,
        "mode": draft.mode.value,
        "reason": draft.reason or None,
        "createdAt": iso(draft.at_ms),
        "base": draft.base,
        "revisions": [revision_record(each) for each in draft.revisions],
        "also": list(draft.also),
        "leftOut": list(draft.left_out),
    }


def revision_record(revision: Revision) -> dict[str, object]:
    """A revision for a program."""
    return {
        "number": revision.number,
        "checkpoint": revision.checkpoint,
        "createdAt": iso(revision.at_ms),
        "cause": revision.cause,
    }


def iso(at_ms: int) -> str:
    """A time as programs read it."""
    text = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
