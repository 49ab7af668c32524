"""Lay out where a project stands, for a person and for a program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from holdfast.cli.render.changes import path_lines
from holdfast.cli.render.checkpoints import checkpoint_record
from holdfast.cli.render.drafts import SCHEMA, draft_record, iso, revisions_page
from holdfast.cli.render.style import Look, Tone
from holdfast.cli.render.table import age
from holdfast.nouns import RelativePath, printable
from holdfast.workbench.model import Checkpoint, Draft


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftStanding:
    """A draft, and what publishing it would do."""

    draft: Draft
    changed: int
    conflicts: tuple[RelativePath, ...] = ()
    merges: tuple[RelativePath, ...] = ()
    processes: int = 0
    ignored: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LastFailure:
    """What went wrong last, as it was written down."""

    at_ms: int
    deed: str
    wire: Mapping[str, object]

    @property
    def actions(self) -> tuple[str, ...]:
        """What can be done about it."""
        return msgspec.convert(self.wire.get("actions", ()), tuple[str, ...])


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a project stands."""

    id: str
    project: str
    records: str = ""  # where events and reports are, if there are any
    drafts: tuple[DraftStanding, ...] = ()
    checkpoints: int = 0
    last: Checkpoint | None = None
    failure: LastFailure | None = None
    damaged: tuple[str, ...] = ()  # drafts that cannot be read, in words


def status_page(standing: Standing, look: Look, *, now: float) -> str:
    """What there is, what is in the way, and what to do next."""
    return "".join(_lines(standing, look, now))


def status_record(standing: Standing) -> dict[str, object]:
    """The same for a program."""
    failure = standing.failure
    return {
        "schema": SCHEMA,
        "type": "status",
        "id": standing.id,
        "project": standing.project,
        "records": standing.records or None,
        "drafts": [
            {
                **draft_record(each.draft),
                "changed": each.changed,
                "ignored": each.ignored,
                "conflicts": list(map(str, each.conflicts)),
                "merges": list(map(str, each.merges)),
                "processes": each.processes,
            }
            for each in standing.drafts
        ],
        "damaged": list(standing.damaged),
        "checkpoints": standing.checkpoints,
        "lastCheckpoint": None if standing.last is None else checkpoint_record(standing.last),
        "lastFailure": None
        if failure is None
        else {"at": iso(failure.at_ms), "deed": failure.deed, "error": dict(failure.wire)},
    }


def _lines(standing: Standing, look: Look, now: float) -> Iterator[str]:
    yield f"{look.paint(printable(standing.project), Tone.STRONG)}\n"
    if not standing.drafts:
        yield from _wrapped("no drafts; holdfast draft run -- COMMAND begins one", look)
    for each in standing.drafts:
        yield from _draft(each, look, now)
    for words in standing.damaged:
        yield f"  {look.paint(look.signs.bad, Tone.BAD)} {printable(words)}\n"
    if standing.last is None:
        yield from _wrapped("no checkpoints yet; holdfast checkpoint create makes one", look)
    else:
        when = age(standing.last.at_ms / 1000, now=now)
        count = f"{standing.checkpoints:,} checkpoint{'' if standing.checkpoints == 1 else 's'}"
        yield from _wrapped(f"{count}, the last {when}: {printable(standing.last.id)}", look)
    if standing.failure is not None:
        yield from _failure(standing.failure, look, now)
        yield f"    reports: {printable(standing.records)}/reports\n"


def _draft(each: DraftStanding, look: Look, now: float) -> Iterator[str]:
    has_trouble = bool(each.conflicts)
    sign = look.paint(
        look.signs.bad if has_trouble else look.signs.good,
        Tone.BAD if has_trouble else Tone.GOOD,
    )
    running = f", {each.processes} running" if each.processes else ""
    count = f"{each.changed:,} change{'' if each.changed == 1 else 's'}"
    if each.ignored:
        count += f" and {each.ignored:,} ignored by git"
    facts = f"{each.draft.mode.value}, {age(each.draft.at_ms / 1000, now=now)}, {count}{running}"
    yield f"  {sign} {printable(each.draft.id)}\n"
    yield from _wrapped(facts, look, indent=4)
    yield revisions_page(each.draft.revisions, look, now=now, most=3)
    if each.merges:
        yield from _wrapped("also changed in the project, to be merged:", look, indent=4)
        yield path_lines(each.merges, look)
    if each.conflicts:
        yield from _wrapped("in conflict with the project:", look, indent=4)
        yield path_lines(each.conflicts, look)
    if each.changed:
        step = (
            "publish --force PATH, or --only others" if has_trouble else "draft diff, then publish"
        )
        yield from _wrapped(f"{look.signs.leads_to} holdfast {step}", look, indent=4)


def _failure(failure: LastFailure, look: Look, now: float) -> Iterator[str]:
    sign = look.paint(look.signs.careful, Tone.CAREFUL)
    when = age(failure.at_ms / 1000, now=now)
    title = printable(str(failure.wire.get("title", failure.deed)))
    yield f"  {sign} {when}: {title}\n"
    words = str(failure.wire.get("userMessage", ""))
    if words:
        yield from _wrapped(printable(words), look, indent=4)
    actions = printable(", ".join(failure.actions)).replace("_", " ")
    if actions:
        yield from _wrapped(f"{look.signs.leads_to} {actions}", look, indent=4)


def _wrapped(text: str, look: Look, *, indent: int = 2) -> Iterator[str]:
    yield from (f"{line}\n" for line in look.wrap(text, indent=indent))
