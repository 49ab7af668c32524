"""Render records of a session: as lines for a terminal, as JSON for a program."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from holdfast.host.model import (
    AnswerSource,
    AnyRecord,
    AttemptStarted,
    EventRecorded,
    PublicationRecorded,
    QuestionAnswered,
    RevisionRecorded,
    ToolsRepaired,
    TurnClosed,
)
from holdfast.nouns import cut, printable, prose
from holdfast.runners.model import (
    AnyEvent,
    NoticeIssued,
    PlanUpdated,
    QuestionAsked,
    ToolEnded,
    ToolStarted,
    TurnEnding,
    UsageUpdated,
)
from holdfast.terminal.model import step_line

SCHEMA: Final = 1
LEFT: Final = "left"  # status of a turn that still ran when the command ended
CELLS: Final = 100
_UNATTENDED: Final = "Refused, because no terminal is attached"


def note_of(record: AnyRecord, cells: int = CELLS) -> str:
    """The line for a record other than a message of the agent; empty for most records."""
    match record:
        case EventRecorded(event=event):
            return _event_note(event, cells)
        case AttemptStarted(attempt, _, reason) if reason:
            return f"! The agent crashed ({printable(reason)}); this is attempt {attempt}."
        case ToolsRepaired(items=items):
            return f"! {len(items)} step(s) were interrupted, and may or may not have completed."
        case QuestionAnswered(answer=answer, by=by) if by is not AnswerSource.PERSON:
            why = "No answer" if by is AnswerSource.NOBODY else _UNATTENDED
            return f"? {why}: {printable(answer) or 'refused'}"
        case RevisionRecorded() | PublicationRecorded():
            return _work_note(record)
        case _:
            return ""


def _work_note(record: RevisionRecorded | PublicationRecorded) -> str:
    match record:
        case RevisionRecorded(revision=revision):
            return f"(The draft is at revision {revision}.)"
        case PublicationRecorded(checkpoint=None):
            return "(Nothing is new, so nothing was published.)"
        case PublicationRecorded(paths=paths):
            return f"(Published: {paths} path(s).)"


def words_of(text: str, cells: int | None) -> str:
    """A message with control characters escaped; wrapped at `cells` columns unless None."""
    lines = prose(text).splitlines()
    if cells is not None:
        lines = [part for line in lines for part in _folded(line, cells)]
    return "".join(f"{line}\n" for line in lines)


def _folded(line: str, cells: int) -> list[str]:
    if len(line) <= cells:
        return [line]
    return textwrap.wrap(line, cells, break_long_words=False, break_on_hyphens=False)


def ending_of(record: AnyRecord) -> str:
    """The line for a turn that was interrupted or failed; empty for all other records."""
    if not isinstance(record, TurnClosed) or record.ending is TurnEnding.COMPLETED:
        return ""
    if record.failure is None:
        return f"(The turn was {record.ending}.)"
    return f"✗ {printable(str(record.failure.get('userMessage', 'The turn failed.')))}"


def _event_note(event: AnyEvent, cells: int) -> str:
    match event:
        case ToolStarted(title=title):
            return cut(f"▸ {printable(title)}", cells, more="…")
        case ToolEnded(is_ok=False, status=status, output=output):
            lines = prose(output).strip().splitlines()
            last = f": {lines[-1]}" if lines else ""
            return cut(f"  ✗ {'' if status is None else status}{last}", cells, more="…")
        case QuestionAsked(title=title):
            return f"? {printable(title)}"
        case NoticeIssued(text=text):
            return f"! {printable(text)}"
        case PlanUpdated(steps=steps):
            return "\n".join(map(step_line, steps))
        case _:
            return ""


def record_of(seq: int, record: AnyRecord) -> dict[str, object]:
    """A record as JSON, with its sequence number."""
    plain: dict[str, object] = msgspec.to_builtins(record, enc_hook=_memo)
    return {"schema": SCHEMA, "seq": seq, **plain}


def _memo(raw: object) -> object:
    """Decode the opaque memory of a runner, which is JSON."""
    assert isinstance(raw, msgspec.Raw), f"{type(raw).__name__} is in no record"
    return msgspec.json.decode(raw)


@dataclass(slots=True)
class TurnResult:
    """What a client has seen of a turn; `status` stays `left` until its end is seen."""

    status: str = LEFT
    text: str = ""
    turn: int | None = None
    revision: int | None = None
    checkpoint: str | None = None
    report: str | None = None
    used: UsageUpdated | None = None
    refusals: int = 0  # permission requests that were refused without a person
    undo: str | None = None  # checkpoint from before the publication, if there was one


def result_of(
    result: TurnResult,
    *,
    session: str | None = None,
    draft: str | None = None,
    error: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """The record of type result, which is always the last."""
    return {
        "schema": SCHEMA,
        "type": "result",
        "status": result.status,
        "text": result.text,
        "session": session,
        "draft": draft,
        "turn": result.turn,
        "revision": result.revision,
        "checkpoint": result.checkpoint,
        "report": result.report,
        "usage": None if result.used is None else msgspec.to_builtins(result.used),
        "refusals": result.refusals,
        "published": result.undo is not None,
        "undo": result.undo,
        "error": None if error is None else dict(error),
    }
