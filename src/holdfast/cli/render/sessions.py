"""Lay out sessions, for a person and for a program."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast.cli.render.style import Look, Tone
from holdfast.cli.render.table import age
from holdfast.cli.render.turns import ending_of, note_of, words_of
from holdfast.host.model import (
    AnswerSource,
    AnyRecord,
    EventRecorded,
    PromptQueued,
    QuestionAnswered,
    SteeringAccepted,
    TurnClosed,
)
from holdfast.nouns import cut, printable, prose
from holdfast.runners.model import TextCompleted

SCHEMA = 1
_TITLE_LEAST = 9
_STATE_LEAST = 7
_PROJECT_MOST = 16
_REPAIRED = "(journal repaired) "
INTERRUPTED = "interrupted"  # a turn is open, and no host carries it out


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenSession:
    """One session, as much of it as a list needs.

    Without a host its phase is `interrupted` if a turn is open, and of no interest otherwise.
    `is_repaired`: its journal was damaged, and what could be read was kept.
    """

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
    is_repaired: bool = False


def sessions_page(sessions: Sequence[SeenSession], look: Look, *, now: float) -> str:
    """A line for each: its name, state, age, the project's name, and what it began with."""
    lines: list[str] = []
    widest = max((_STATE_LEAST, *(len(_state(each)) for each in sessions)))
    projects = [cut(_project(each), _PROJECT_MOST, more=look.signs.more) for each in sessions]
    project_cells = max(map(len, projects), default=0)
    for each, project in zip(sessions, projects, strict=True):
        state = _state(each).ljust(widest)
        head = f"{printable(each.name)}  {state}  {age(each.at_ms / 1000, now=now):<10}"
        if look.width - len(head) - project_cells - 4 >= _TITLE_LEAST:
            head += f"  {project:<{project_cells}}"
        note = _REPAIRED if each.is_repaired else ""
        room = max(look.width - len(head) - len(note) - 2, _TITLE_LEAST)
        title = printable(" ".join(each.title.split()))
        lines.append(f"{head}  {note}{cut(title, room, more=look.signs.more)}\n")
    return "".join(lines)


def _project(each: SeenSession) -> str:
    return printable(posixpath.basename(each.project) or each.project)


def _state(each: SeenSession) -> str:
    return each.phase if each.is_hosted or each.phase == INTERRUPTED else "stopped"


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
        "repaired": each.is_repaired,
    }


def conversation_page(records: Iterable[AnyRecord], look: Look, *, cells: int | None = None) -> str:
    """The conversation as text; messages wrapped at `cells` columns unless None."""
    return "".join(line_of(record, look, cells=cells) for record in records)


def line_of(record: AnyRecord, look: Look, *, cells: int | None = None) -> str:
    """What one record looks like in a conversation; nothing if it is not for people."""
    match record:
        case PromptQueued(text=text):
            return f"\n{look.paint(f'> {prose(text)}', Tone.STRONG)}\n"
        case SteeringAccepted(text=text):
            return f"{look.paint(f'» {prose(text)}', Tone.STRONG)}\n"
        case QuestionAnswered(answer=answer, by=AnswerSource.PERSON):
            return f"{look.paint(f'> {prose(answer)}', Tone.STRONG)}\n"
        case EventRecorded(event=TextCompleted(text=text)):
            return words_of(text, cells)
        case TurnClosed():
            ending = ending_of(record)
            return "".join(f"{line}\n" for line in look.wrap(ending, indent=0))
        case _:
            note = note_of(record, look.width)
            return f"{look.paint(note, Tone.QUIET)}\n" if note else ""
