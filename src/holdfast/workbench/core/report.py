"""Lay out what a publication, a restore or a failure did, for a browser and for a program.

A page is whole by itself and needs no network. It holds no contents of files, only what became of
them; a name can be any bytes, so everything in it is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Final

import msgspec

from holdfast.nouns import RelativePath
from holdfast.workbench.model import Change, deed_of

SCHEMA: Final = 1
FILES_MAX: Final = 10_000
_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}"
    "th,td{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0;overflow-wrap:anywhere}"
    "code{overflow-wrap:anywhere}.good{color:#06622d}.bad{color:#a1131f}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#eee}"
    ".good{color:#7ddc9c}.bad{color:#ff9a9a}}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was done, or was not: the facts, of which everything that is shown is made.

    `failure` is the wire form of what went wrong, without secrets; without one it succeeded.
    `kept` says what one can go back to, and where.
    """

    deed: str
    at: datetime
    project: str
    key: str = ""
    draft: str | None = None
    checkpoint: str | None = None
    files: tuple[Change, ...] = ()
    remarks: tuple[tuple[RelativePath, str], ...] = ()
    failure: Mapping[str, object] | None = None
    kept: tuple[str, ...] = ()


def report_record(report: Report) -> dict[str, object]:
    """The report for a program; at most so many files are listed, and all are counted."""
    remarks = dict(report.remarks)
    return {
        "schema": SCHEMA,
        "type": "report",
        "deed": report.deed,
        "at": report.at.isoformat(),
        "project": report.project,
        "key": report.key or None,
        "draft": report.draft,
        "checkpoint": report.checkpoint,
        "files": [
            {
                "path": str(change.path),
                "deed": deed_of(change.before, change.after),
                "sizeBefore": None if change.before is None else change.before.size,
                "sizeAfter": None if change.after is None else change.after.size,
                "remark": remarks.get(change.path),
            }
            for change in report.files[:FILES_MAX]
        ],
        "filesCount": len(report.files),
        "remarks": [
            {"path": str(path), "remark": remark} for path, remark in report.remarks[:FILES_MAX]
        ],
        "kept": list(report.kept),
        "error": None if report.failure is None else dict(report.failure),
    }


def report_page(report: Report) -> str:
    """The report for a browser: one page, without scripts, pictures or links elsewhere."""
    title = escape(f"{report.deed.capitalize()} of {report.project}")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">\n"
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "".join(f"{part}\n" for part in _parts(report, title))
        + "</main>\n</body>\n</html>\n"
    )


def _parts(report: Report, title: str) -> Iterator[str]:
    yield f"<h1>{title}</h1>"
    failure = report.failure
    if failure is None:
        yield '<p class="good"><strong>Done.</strong></p>'
    else:
        yield f'<p class="bad"><strong>{_text(failure, "title")}</strong></p>'
        yield f"<p>{_text(failure, 'userMessage')}</p>"
    yield _table((), _facts(report))
    if report.files:
        yield f"<h2>{len(report.files)} paths</h2>"
        yield _table(("what", "path", "bytes before", "bytes after", ""), _files(report))
        yield from _left_out(len(report.files))
    listed = {change.path for change in report.files}
    others = [(path, remark) for path, remark in report.remarks if path not in listed]
    if others:
        yield "<h2>Not done</h2>"
        rows = ((escape(str(path)), escape(remark)) for path, remark in others[:FILES_MAX])
        yield _table(("path", "why"), rows)
        yield from _left_out(len(others))
    if report.kept:
        lines = "".join(f"<li>{escape(line)}</li>" for line in report.kept)
        yield f"<h2>What is kept</h2>\n<ul>{lines}</ul>"


def _facts(report: Report) -> Iterator[tuple[str, ...]]:
    yield "when", escape(report.at.isoformat())
    yield "project", f"<code>{escape(report.project)}</code>"
    for name, value in (("draft", report.draft), ("checkpoint before it", report.checkpoint)):
        if value is not None:
            yield name, f"<code>{escape(value)}</code>"
    if report.failure is not None:
        yield "code", f"<code>{_text(report.failure, 'code')}</code>"
        yield "phase", _text(report.failure, "phase")
        actions = msgspec.convert(report.failure.get("actions", ()), tuple[str, ...])
        yield "what one can do", escape(", ".join(actions).replace("_", " "))


def _files(report: Report) -> Iterator[tuple[str, ...]]:
    remarks = dict(report.remarks)
    for change in report.files[:FILES_MAX]:
        yield (
            deed_of(change.before, change.after),
            f"<code>{escape(str(change.path))}</code>",
            "" if change.before is None else str(change.before.size),
            "" if change.after is None else str(change.after.size),
            escape(remarks.get(change.path, "")),
        )


def _left_out(count: int) -> Iterator[str]:
    if count > FILES_MAX:
        yield f"<p>{count - FILES_MAX} more are not listed here.</p>"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table of cells that are escaped already; without a head the first column is one."""
    first = "<tr>" + "".join(f'<th scope="col">{cell}</th>' for cell in head) + "</tr>\n"
    lines = [
        f'<tr><th scope="row">{row[0]}</th>' + "".join(f"<td>{cell}</td>" for cell in row[1:])
        if not head
        else "<tr>" + "".join(f"<td>{cell}</td>" for cell in row)
        for row in rows
    ]
    return (
        f"<table>\n{first if head else ''}" + "".join(f"{line}</tr>\n" for line in lines)
    ) + "</table>"


def _text(failure: Mapping[str, object], name: str) -> str:
    return escape(str(failure.get(name, "")))
