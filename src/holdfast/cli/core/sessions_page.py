"""Lay out sessions, for a person and for a program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast.cli.core.look import Look, Tone
from holdfast.cli.core.threads_page import age
from holdfast.cli.core.turn_lines import ending_of, note_of, words_of
from holdfast.host.model import Answered, AnyRecord, Happened, Prompted, TurnClosed, Who
from holdfast.nouns import cut, printable, prose
from holdfast.runners.model import Said

SCHEMA = 1
_TITLE_LEAST = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenSession:
    """One session, as much of it as a list needs; `phase` is none if nobody hosts it."""

    id: str
    name: str  # by which a person calls it
    project: str
    draft: str
    runner: str
    title: str
    at_ms: int
    turns: int
    phase: str
    is_hosted: bool


def sessions_page(sessions: Sequence[SeenSession], look: Look, *, now: float) -> str:
    """A line for each: how to name it, how it stands, since when, and what it began with."""
    lines: list[str] = []
    for each in sessions:
        state = each.phase if each.is_hosted else "at rest"
        head = f"{printable(each.name)}  {state:<7}  {age(each.at_ms / 1000, now=now):<10}"
        room = max(look.width - len(head) - 2, _TITLE_LEAST)
        title = printable(" ".join(each.title.split()))
        lines.append(f"{head}  {cut(title, room, more=look.signs.more)}\n")
    return "".join(lines)


def session_record(each: SeenSession) -> dict[str, object]:
    """One session for a program."""
    return {
        "schema": SCHEMA,
        "type": "session",
        "id": each.id,
        "project": each.project,
        "draft": each.draft,
        "runner": each.runner,
        "title": each.title,
        "atMs": each.at_ms,
        "turns": each.turns,
        "phase": each.phase,
        "hosted": each.is_hosted,
    }


def conversation_page(records: Iterable[AnyRecord], look: Look, *, cells: int | None = None) -> str:
    """What was said and done, in order; what was said in lines of so many cells, if need be."""
    return "".join(line_of(record, look, cells=cells) for record in records)


def line_of(record: AnyRecord, look: Look, *, cells: int | None = None) -> str:
    """What one record looks like in a conversation; nothing if it is not for people."""
    match record:
        case Prompted(text=text):
            return f"\n{look.paint(f'> {prose(text)}', Tone.STRONG)}\n"
        case Answered(answer=answer, by=Who.PERSON):
            return f"{look.paint(f'> {prose(answer)}', Tone.STRONG)}\n"
        case Happened(event=Said(text=text)):
            return words_of(text, cells)
        case TurnClosed():
            ending = ending_of(record)
            return "".join(f"{line}\n" for line in look.wrap(ending, indent=0))
        case _:
            note = note_of(record, look.width)
            return f"{look.paint(note, Tone.QUIET)}\n" if note else ""
