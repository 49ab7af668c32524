"""Report of a turn, as an HTML page and as a record.

All text comes from models, tools and file names, so everything is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from typing import Final, NamedTuple

import msgspec

from holdfast.host.model import (
    AnyRecord,
    EventRecorded,
    PromptQueued,
    PublicationRecorded,
    RevisionRecorded,
    SessionOpened,
    TurnClosed,
)
from holdfast.nouns import html_failure, html_page, html_table
from holdfast.runners.model import (
    FilesChanged,
    QuestionAsked,
    TextCompleted,
    ToolEnded,
    ToolStarted,
    TurnEnding,
    UsageUpdated,
)

SCHEMA: Final = 1
LISTED_MAX: Final = 10_000


class TouchedFile(NamedTuple):
    """A changed file, and the source of that knowledge: the draft or the agent."""

    path: str
    deed: str


@dataclass(slots=True)
class ReportStep:
    """A tool call; without an end its outcome is unknown."""

    tool: str
    title: str
    is_ok: bool | None = None
    status: int | None = None


@dataclass(slots=True)
class TurnReport:
    """Facts of one turn."""

    turn: int
    session: str = ""
    project: str = ""
    draft: str = ""
    runner: str = ""
    prompt: str = ""
    text: str = ""
    began_ms: int = 0
    closed: TurnClosed | None = None
    steps: dict[str, ReportStep] = field(default_factory=dict[str, ReportStep])
    questions: int = 0
    touched: list[TouchedFile] = field(default_factory=list[TouchedFile])
    revised: RevisionRecorded | None = None
    published: PublicationRecorded | None = None
    used: UsageUpdated | None = None


def turn_report(
    records: Iterable[AnyRecord], closed: TurnClosed, touched: Sequence[TouchedFile] | None
) -> TurnReport:
    """Collect the facts of a turn; `touched` is what the draft says, if it is known."""
    report = TurnReport(closed.turn, closed=closed)
    for record in records:
        if isinstance(record, SessionOpened):
            report.session, report.project = record.session, record.project
            report.draft, report.runner = record.draft, record.runner
        elif getattr(record, "turn", None) == closed.turn:
            _learn(report, record)
    if touched is not None:
        report.touched = list(touched)
    return report


def _learn(report: TurnReport, record: AnyRecord) -> None:
    match record:
        case PromptQueued(text=text, at_ms=at_ms):
            report.prompt, report.began_ms = text, at_ms
        case RevisionRecorded():
            report.revised = record
        case PublicationRecorded():
            report.published = record
        case EventRecorded(event=TextCompleted(text=text)):
            report.text = text
        case EventRecorded(event=ToolStarted(item, tool, title)):
            report.steps[item] = ReportStep(tool, title)
        case EventRecorded(event=ToolEnded(item, is_ok, status=status)) if item in report.steps:
            report.steps[item].is_ok, report.steps[item].status = is_ok, status
        case EventRecorded(event=FilesChanged(paths=paths)):
            report.touched += [TouchedFile(path, "changed") for path in paths]
        case EventRecorded(event=QuestionAsked()):
            report.questions += 1
        case EventRecorded(event=UsageUpdated() as used):
            report.used = used
        case _:
            pass


def kept_of(report: TurnReport) -> list[str]:
    """Return what was kept, and how to access it."""
    kept = [f"All that was said and done: holdfast sessions show {report.session}"]
    kept.append(f"The draft {report.draft}: holdfast draft diff --draft {report.draft}")
    if report.revised is not None:
        revision, checkpoint = report.revised.revision, report.revised.checkpoint
        kept.append(f"How this turn left it: revision {revision}, checkpoint {checkpoint}")
    if report.published is not None and report.published.checkpoint is not None:
        kept.append(f"The project as it was before: holdfast restore {report.published.checkpoint}")
    return kept


def report_record(report: TurnReport) -> dict[str, object]:
    """Return the report as a record; steps and files are listed up to a limit, and counted."""
    closed, revised, published = report.closed, report.revised, report.published
    assert closed is not None, "only what is over is reported"
    return {
        "schema": SCHEMA,
        "type": "turnReport",
        "session": report.session,
        "turn": report.turn,
        "phase": closed.ending.value,
        "project": report.project,
        "draft": report.draft,
        "runner": report.runner,
        "model": report.used.model if report.used is not None else None,
        "prompt": report.prompt,
        "text": report.text,
        "beganAt": _time(report.began_ms),
        "endedAt": _time(closed.at_ms),
        "steps": [
            {"tool": each.tool, "title": each.title, "ok": each.is_ok, "status": each.status}
            for each in list(report.steps.values())[:LISTED_MAX]
        ],
        "stepsCount": len(report.steps),
        "questions": report.questions,
        "files": [each._asdict() for each in report.touched[:LISTED_MAX]],
        "filesCount": len(report.touched),
        "revision": None if revised is None else revised.revision,
        "checkpoint": None if revised is None else revised.checkpoint,
        "published": None if published is None else published.paths,
        "undo": None if published is None else published.checkpoint,
        "usage": None if report.used is None else msgspec.to_builtins(report.used),
        "kept": kept_of(report),
        "error": closed.failure,
    }


def report_page(report: TurnReport) -> str:
    """Return the report as one HTML page without scripts, images or external links."""
    return html_page(f"Turn {report.turn} in {report.project}", _parts(report))


def _parts(report: TurnReport) -> Iterator[str]:
    closed = report.closed
    assert closed is not None, "only what is over is reported"
    if closed.failure is None or closed.ending is TurnEnding.COMPLETED:
        tone = "good" if closed.ending is TurnEnding.COMPLETED else "bad"
        yield f'<p class="{tone}"><strong>{closed.ending.value.capitalize()}.</strong></p>'
    if closed.failure is not None:
        yield html_failure(closed.failure)
    yield html_table(_facts(report, closed))
    yield f"<h2>Asked</h2>\n<pre>{escape(report.prompt)}</pre>"
    if report.text:
        yield f"<h2>Said last</h2>\n<pre>{escape(report.text)}</pre>"
    if report.steps:
        yield f"<h2>{_counted(len(report.steps), 'step')}</h2>"
        steps = list(report.steps.values())[:LISTED_MAX]
        rows = ((f"<code>{escape(each.title)}</code>", _came_to(each)) for each in steps)
        yield html_table(rows, head=("what", "came to"))
    if report.touched:
        yield f"<h2>{_counted(len(report.touched), 'file')}</h2>"
        files = report.touched[:LISTED_MAX]
        rows = ((escape(deed), f"<code>{escape(path)}</code>") for path, deed in files)
        yield html_table(rows, head=("what", "path"))
    kept = (line.partition(": ") for line in kept_of(report))
    yield "<h2>What is kept</h2>"
    yield html_table((escape(what), f"<code>{escape(how)}</code>") for what, _, how in kept)


def _facts(report: TurnReport, closed: TurnClosed) -> Iterator[tuple[str, str]]:
    yield "session", f"<code>{escape(report.session)}</code>"
    yield "draft", f"<code>{escape(report.draft)}</code>"
    yield "began", _read_time(report.began_ms)
    yield "ended", f"{_read_time(closed.at_ms)}, {_lasted(closed.at_ms - report.began_ms)} later"
    yield "runner", escape(report.runner)
    if report.used is not None:
        yield "model", escape(report.used.model)
        tokens = report.used.input_tokens, report.used.cached_tokens, report.used.output_tokens
        yield "used so far", "{:,} tokens in ({:,} of them cached), {:,} out".format(*tokens)
    if report.questions:
        yield "asked the person", f"{report.questions} time(s)"
    if report.published is not None:
        yield "published", f"{report.published.paths} path(s)"


def _came_to(step: ReportStep) -> str:
    if step.is_ok is None:
        return '<span class="bad">interrupted, may or may not have completed</span>'
    status = "" if step.status is None else f" ({step.status})"
    return f"done{status}" if step.is_ok else f'<span class="bad">failed{status}</span>'


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat()


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _read_time(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _lasted(span_ms: int) -> str:
    minutes, seconds = divmod(round(span_ms / 1000), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
