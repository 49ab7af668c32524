"""What facts about the interpreter, SQLite and the settings mean."""

from __future__ import annotations

import pytest

from holdfast.app.doctor.model import Finding, Machine, Refused, Status
from holdfast.app.doctor.storage import (
    Interpreter,
    Sqlite,
    judge_interpreter,
    judge_sqlite,
    judge_variables,
)

DEBIAN = Machine(system="Linux", family="debian", is_root=True)
OK, WARNING, FAILED, SKIPPED = Status.OK, Status.WARNING, Status.FAILED, Status.SKIPPED


@pytest.mark.parametrize(
    ("facts", "status", "text"),
    [
        (Interpreter((3, 11, 0), "CPython", is_64_bit=True), OK, "3.11.0 (CPython), 64 bit"),
        (Interpreter((3, 10, 9), "CPython", is_64_bit=True), FAILED, "3.10.9 (CPython) is too old"),
        (
            Interpreter((3, 12, 1), "CPython", is_64_bit=False),
            FAILED,
            "3.12.1 (CPython) is a 32-bit build: large files are out of reach",
        ),
    ],
)
def test_interpreter(facts: Interpreter, status: Status, text: str) -> None:
    finding = judge_interpreter(facts, DEBIAN)

    assert (finding.status, finding.text) == (status, text)


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        (Sqlite((3, 37, 0), 3, "wal", "ok"), OK),
        (Sqlite((3, 37, 0), 1, "wal", "ok"), OK),
        (Sqlite((3, 36, 9), 3, "wal", "ok"), FAILED),
        (Sqlite((3, 40, 1), 0, "wal", "ok"), FAILED),
        (Sqlite((3, 40, 1), 3, "delete", "ok"), FAILED),
        (Sqlite((3, 40, 1), 3, "wal", "row 1 missing"), FAILED),
        (Refused("disk I/O error"), FAILED),
        (Refused("Permission denied", "EACCES", is_nowhere=True), SKIPPED),
    ],
)
def test_sqlite(facts: Sqlite | Refused, status: Status) -> None:
    assert judge_sqlite(facts, DEBIAN).status is status


@pytest.mark.parametrize(
    ("unknown", "expected"),
    [
        ((), Finding(OK, "no unknown variables")),
        (
            ("HOLDFAST_HOEM",),
            Finding(
                WARNING, "HOLDFAST_HOEM means nothing to Holdfast", "Did you mean HOLDFAST_HOME?"
            ),
        ),
        (("X",), Finding(WARNING, "X means nothing to Holdfast", "unset X")),
    ],
)
def test_variables(unknown: tuple[str, ...], expected: Finding) -> None:
    assert judge_variables(unknown, known=("HOLDFAST_HOME",)) == expected
