"""Show what happens in a session: to a person a line each, to a program as records."""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.cli.core.printable import cut, printable, prose
from holdfast.host.model import (
    Answered,
    AnyRecord,
    Begun,
    Happened,
    Repaired,
    Revised,
    TurnClosed,
    Who,
)
from holdfast.runners.model import (
    AnyEvent,
    Asked,
    Noticed,
    Planned,
    Progress,
    ToolEnded,
    ToolStarted,
)

SCHEMA: Final = 1
_CELLS: Final = 100
_MARKS: Final = {Progress.DONE: "✓", Progress.BEGUN: "▸", Progress.OPEN: "·"}


def note_of(record: AnyRecord) -> str:
    """What a person is told of a record beside what the agent says; often nothing."""
    match record:
        case Happened(event=event):
            return _event_note(event)
        case Begun(attempt, _, reason) if reason:
            return f"! The agent crashed ({printable(reason)}); this is attempt {attempt}."
        case Repaired(items=items):
            return f"! {len(items)} step(s) were interrupted, and may or may not have completed."
        case Answered(answer=answer, by=Who.NOBODY):
            return f"? Nobody answered: {printable(answer) or 'refused'}"
        case Revised(revision=revision):
            return f"(Revision {revision} of the draft; holdfast draft diff shows it.)"
        case _:
            return ""


def _event_note(event: AnyEvent) -> str:
    match event:
        case ToolStarted(title=title):
            return cut(f"▸ {printable(title)}", _CELLS, more="…")
        case ToolEnded(is_ok=False, status=status, output=output):
            lines = prose(output).strip().splitlines()
            last = f": {lines[-1]}" if lines else ""
            return cut(f"  ✗ {'' if status is None else status}{last}", _CELLS, more="…")
        case Asked(title=title):
            return f"? {printable(title)}"
        case Noticed(text=text):
            return f"! {printable(text)}"
        case Planned(steps=steps):
            return "\n".join(f"  {_MARKS[step.progress]} {printable(step.text)}" for step in steps)
        case _:
            return ""


def record_of(seq: int, record: AnyRecord) -> dict[str, object]:
    """A record for a program, with its number in the session."""
    plain: dict[str, object] = msgspec.to_builtins(record)
    return {"schema": SCHEMA, "seq": seq, **plain}


def result_of(session: str, draft: str, closed: TurnClosed | None, text: str) -> dict[str, object]:
    """How a turn ended, for a program: always the last record."""
    return {
        "schema": SCHEMA,
        "type": "result",
        "session": session,
        "draft": draft,
        "status": None if closed is None else closed.ending,
        "text": text,
        "error": None if closed is None else closed.failure,
    }
