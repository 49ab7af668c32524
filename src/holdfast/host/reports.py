"""Keep a report of every turn beside the journal: a page and a record, readable offline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from holdfast import telemetry
from holdfast.host.book import read_book
from holdfast.host.core.report import Touched, report_page, report_record, turn_report
from holdfast.host.model import TurnClosed
from holdfast.world import SystemDisk, disk_failure, make_private, replace_file

REPORTS: Final = "reports"


def write_report(
    directory: Path, journal: str, closed: TurnClosed, touched: Sequence[Touched] | None
) -> Path:
    """Write the report of a turn from the journal in a directory; return its page.

    Secrets are taken out on the way. Written again, it is there once.
    """
    records = (record for _, record in read_book(directory / journal))  # of every turn
    report = turn_report(records, closed, touched)
    try:
        make_private(directory / REPORTS)
    except OSError as error:
        raise disk_failure(error, path=str(directory / REPORTS)) from error
    redact = telemetry.Redactor().text
    record = telemetry.ValueRedactor(redact).mapping(report_record(report))
    data = msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"
    page = directory / REPORTS / f"turn-{closed.turn}.html"
    html = redact(report_page(report)).encode("utf-8", "backslashreplace")
    replace_file(SystemDisk(), page.with_suffix(".json"), [data])
    replace_file(SystemDisk(), page, [html])
    return page
