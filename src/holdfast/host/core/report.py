"""Lay out what a turn did and came to, for a browser and for a program.

A page is whole by itself and needs no network. What it shows was said or named by others, so
everything in it is escaped.
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
    Happened,
    Opened,
    Prompted,
    Published,
    Revised,
    TurnClosed,
)
from holdfast.runners.model import Asked, FilesChanged, Said, ToolEnded, ToolStarted, Used

SCHEMA: Final = 1
LISTED_MAX: Final = 10_000
_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}pre{white-space:pre-wrap;overflow-wrap:anywhere}"
    "th,td{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0;overflow-wrap:anywhere}"
    ".good{color:#06622d}.bad{color:#a1131f}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#eee}"
    ".good{color:#7ddc9c}.bad{color:#ff9a9a}}"
)


class Touched(NamedTuple):
    """What became of a file, and how we know: by the draft, or by the agent's own word."""

    path: str
    deed: str


@dataclass(slots=True)
class ReportStep:
    """Something that the agent did; without an end, nobody knows what came of it."""

    tool: str
    title: str
    is_ok: bool | None = None
    status: int | None = None


@dataclass(slots=True)
class TurnReport:
    """What is known of one turn."""

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
    touched: list[Touched] = field(default_factory=list[Touched])
    revised: Revised | None = None
    published: Published | None = None
    used: Used | None = None


def turn_report(
    records: Iterable[AnyRecord], closed: TurnClosed, touched: Sequence[Touched] | None
) -> TurnReport:
    """The report of the turn that has closed so; what it touched is what the draft says, if any."""
    report = TurnReport(closed.turn, closed=closed)
    for record in records:
        if isinstance(record, Opened):
            report.session, report.project = record.session, record.project
            report.draft, report.runner = record.draft, record.runner
        elif getattr(record, "turn", None) == closed.turn:
            _learn(report, record)
    if touched is not None:
        report.touched = list(touched)
    return report


def _learn(report: TurnReport, record: AnyRecord) -> None:
    match record:
        case Prompted(text=text, at_ms=at_ms):
            report.prompt, report.began_ms = text, at_ms
        case Revised():
            report.revised = record
        case Published():
            report.published = record
        case Happened(event=Said(text=text)):
            report.text = text
        case Happened(event=ToolStarted(item, tool, title)):
            report.steps[item] = ReportStep(tool, title)
        case Happened(event=ToolEnded(item, is_ok, status=status)) if item in report.steps:
            report.steps[item].is_ok, report.steps[item].status = is_ok, status
        case Happened(event=FilesChanged(paths=paths)):
            report.touched += [Touched(path, "changed") for path in paths]
        case Happened(event=Asked()):
            report.questions += 1
        case Happened(event=Used() as used):
            report.used = used
        case _:
            pass


def kept_of(report: TurnReport) -> list[str]:
    """What is kept, and how one gets at it."""
    kept = [f"All that was said and done: holdfast sessions show {report.session}"]
    kept.append(f"The draft {report.draft}: holdfast draft diff --draft {report.draft}")
    if report.revised is not None:
        revision, checkpoint = report.revised.revision, report.revised.checkpoint
        kept.append(f"How this turn left it: revision {revision}, checkpoint {checkpoint}")
    return kept


def report_record(report: TurnReport) -> dict[str, object]:
    """The report for a program; at most so many steps and files are listed, and all counted."""
    closed, revised = report.closed, report.revised
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
        "usage": None if report.used is None else msgspec.to_builtins(report.used),
        "kept": kept_of(report),
        "error": closed.failure,
    }


def report_page(report: TurnReport) -> str:
    """The report for a browser: one page, without scripts, pictures or links elsewhere."""
    title = f"Turn {report.turn} in {escape(report.project)}"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">\n"
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{title}</h1>\n"
        + "".join(f"{part}\n" for part in _parts(report))
        + "</main>\n</body>\n</html>\n"
    )


def _parts(report: TurnReport) -> Iterator[str]:
    closed = report.closed
    assert closed is not None, "only what is over is reported"
    tone = "bad" if closed.failure is not None else "good"
    yield f'<p class="{tone}"><strong>{escape(closed.ending.value.capitalize())}.</strong></p>'
    if closed.failure is not None:
        yield f"<p>{escape(str(closed.failure.get('userMessage', '')))}</p>"
    yield _table(_facts(report, closed))
    yield f"<h2>Asked</h2>\n<pre>{escape(report.prompt)}</pre>"
    if report.text:
        yield f"<h2>Said last</h2>\n<pre>{escape(report.text)}</pre>"
    if report.steps:
        yield f"<h2>{len(report.steps)} steps</h2>"
        steps = list(report.steps.values())[:LISTED_MAX]
        yield _table((escape(each.title), _came_to(each)) for each in steps)
    if report.touched:
        yield f"<h2>{len(report.touched)} files</h2>"
        yield _table((escape(path), escape(deed)) for path, deed in report.touched[:LISTED_MAX])
    kept = "".join(f"<li>{escape(line)}</li>" for line in kept_of(report))
    yield f"<h2>What is kept</h2>\n<ul>{kept}</ul>"


def _facts(report: TurnReport, closed: TurnClosed) -> Iterator[tuple[str, str]]:
    yield "session", escape(report.session)
    yield "began", _time(report.began_ms)
    yield "ended", _time(closed.at_ms)
    yield "runner", escape(report.runner)
    if report.used is not None:
        yield "model", escape(report.used.model)
        tokens = report.used.input_tokens, report.used.cached_tokens, report.used.output_tokens
        yield "used so far", "{:,} tokens in ({:,} of them cached), {:,} out".format(*tokens)
    if closed.failure is not None:
        yield "code", escape(str(closed.failure.get("code", "")))
        yield "phase", escape(str(closed.failure.get("phase", "")))


def _came_to(step: ReportStep) -> str:
    if step.is_ok is None:
        return '<span class="bad">interrupted, may or may not have completed</span>'
    status = "" if step.status is None else f" ({step.status})"
    return f"done{status}" if step.is_ok else f'<span class="bad">failed{status}</span>'


def _table(rows: Iterable[tuple[str, str]]) -> str:
    """A table of cells that are escaped already."""
    lines = "".join(f'<tr><th scope="row">{one}</th><td>{two}</td></tr>\n' for one, two in rows)
    return f"<table>\n{lines}</table>"


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat()
