"""The page of the probes."""

from __future__ import annotations

from holdfast.cli.render.sandbox import Tried, probe_page, probe_record
from holdfast.cli.render.style import look

LOOK = look(wanted="never", is_terminal=True, colourless=True, encoding="ascii", columns=50)
TRIED = (
    Tried("read", "Read a file.", "contained", "Permission denied"),
    Tried("change", "Change the mode of a file that is quite outside.", "escaped", ""),
    Tried("trace", "Trace.", "not applicable", "without a sandbox, too: no\x1b[2J"),
)


def test_a_line_for_each_and_the_sum() -> None:
    assert probe_page(TRIED, "reduced", LOOK).splitlines() == [
        "  + read    Read a file.",
        "  x change  Change the mode of a file that is q...",
        "  - trace   without a sandbox, too: no\\x1b[2J",
        "",
        "1 of 3 contained, 1 escaped, 1 not applicable (strength: reduced)",
    ]


def test_a_record_for_a_program() -> None:
    assert probe_record(TRIED[1:], "reduced") == {
        "schema": 1,
        "strength": "reduced",
        "probes": [
            {
                "id": "change",
                "tries": "Change the mode of a file that is quite outside.",
                "contained": False,
                "verdict": "escaped",
                "reason": None,
            },
            {
                "id": "trace",
                "tries": "Trace.",
                "contained": None,
                "verdict": "not applicable",
                "reason": "without a sandbox, too: no\x1b[2J",
            },
        ],
        "summary": {"escaped": 1, "not applicable": 1},
    }
