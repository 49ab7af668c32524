"""Layout of reports as HTML and JSON. Pure.

A page is self-contained and holds no file contents. Names are arbitrary bytes, so everything is
escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Final

import msgspec

from holdfast.nouns import RelativePath, html_failure, html_page, html_table
from holdfast.workbench.model import PathChange, change_kind

SCHEMA: Final = 1
FILES_MAX: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationReport:
    """Facts of a report.

    `failure` is a redacted wire form; None on success. `kept` lists commands to go back.
    """

    deed: str
    at: datetime
    project: str
    key: str = ""
    draft: str | None = None
    checkpoint: str | None = None
    files: tuple[PathChange, ...] = ()
    remarks: tuple[tuple[RelativePath, str], ...] = ()
    failure: Mapping[str, object] | None = None
    kept: tuple[str, ...] = ()


def report_record(report: OperationReport) -> dict[str, object]:
    """The report as JSON; at most FILES_MAX files are listed, all are counted."""
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
                "deed": change_kind(change.before, change.after),
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


def report_page(report: OperationReport) -> str:
    """The report as one page without scripts or external links.

    The JSON record is in the element `record`.
    """
    title = f"{report.deed.capitalize()} of {report.project}"
    return html_page(title, _parts(report))


def _parts(report: OperationReport) -> Iterator[str]:
    if report.failure is None:
        yield '<p class="good"><strong>Done.</strong></p>'
    else:
        yield html_failure(report.failure)
    yield html_table(_facts(report))
    if report.files:
        yield f"<h2>{len(report.files)} paths</h2>"
        head = ("what", "path", "bytes before", "bytes after", "")
        yield html_table(_files(report), head=head)
        yield from _left_out(len(report.files))
    listed = {change.path for change in report.files}
    others = [(path, remark) for path, remark in report.remarks if path not in listed]
    if others:
        yield "<h2>Not done</h2>"
        rows = ((escape(str(path)), escape(remark)) for path, remark in others[:FILES_MAX])
        yield html_table(rows, head=("path", "why"))
        yield from _left_out(len(others))
    if report.kept:
        lines = "".join(f"<li>{escape(line)}</li>" for line in report.kept)
        yield f"<h2>What is kept</h2>\n<ul>{lines}</ul>"
    record = escape(msgspec.json.encode(report_record(report)).decode(), quote=False)
    yield "<details>\n<summary>The same for a program</summary>"
    yield f'<pre id="record">{record}</pre>\n</details>'


def _facts(report: OperationReport) -> Iterator[tuple[str, ...]]:
    yield "when", escape(report.at.isoformat())
    yield "project", f"<code>{escape(report.project)}</code>"
    for name, value in (("draft", report.draft), ("checkpoint before it", report.checkpoint)):
        if value is not None:
            yield name, f"<code>{escape(value)}</code>"


def _files(report: OperationReport) -> Iterator[tuple[str, ...]]:
    remarks = dict(report.remarks)
    for change in report.files[:FILES_MAX]:
        yield (
            change_kind(change.before, change.after),
            f"<code>{escape(str(change.path))}</code>",
            "" if change.before is None else str(change.before.size),
            "" if change.after is None else str(change.after.size),
            escape(remarks.get(change.path, "")),
        )


def _left_out(count: int) -> Iterator[str]:
    if count > FILES_MAX:
        yield f"<p>{count - FILES_MAX} more are not listed here.</p>"
