"""What a person and a program are told of a turn."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.cli.render.turns import TurnResult, ending_of, note_of, record_of, result_of, words_of
from holdfast.host.model import (
    Answered,
    AnyRecord,
    Begun,
    Happened,
    Prompted,
    Published,
    Repaired,
    Revised,
    TurnClosed,
    Who,
)
from holdfast.runners.model import (
    Asked,
    Ending,
    Noticed,
    Planned,
    PlanStep,
    Progress,
    Remembered,
    Said,
    ToolEnded,
    ToolStarted,
    Used,
)


@pytest.mark.parametrize(
    ("record", "note"),
    [
        (Happened(1, ToolStarted("a", "run", "make \x1b[31mtest")), "▸ make \\x1b[31mtest"),
        (Happened(1, ToolEnded("a", is_ok=False, output="x\nbad\n", status=2)), "  ✗ 2: bad"),
        (Happened(1, ToolEnded("a", is_ok=False)), "  ✗ "),
        (Happened(1, ToolEnded("a", is_ok=True, output="fine")), ""),
        (Happened(1, Asked("q", "May I?")), "? May I?"),
        (Happened(1, Noticed("Slow.")), "! Slow."),
        (
            Happened(1, Planned((PlanStep("one", Progress.DONE), PlanStep("two", Progress.OPEN)))),
            "  ✓ one\n  · two",
        ),
        (Happened(1, Said("a", "Hello")), ""),
        (Begun(1, 0), ""),
        (Begun(2, 0, "its host died"), "! The agent crashed (its host died); this is attempt 2."),
        (
            Repaired(1, ("a", "b")),
            "! 2 step(s) were interrupted, and may or may not have completed.",
        ),
        (Answered("q", "no", Who.NOBODY), "? Nobody answered: no"),
        (Answered("q", "", Who.NOBODY), "? Nobody answered: refused"),
        (Answered("q", "no", Who.UNATTENDED), "? Nobody is here to be asked: no"),
        (Answered("q", "yes", Who.PERSON), ""),
        (Revised(1, 3, "cp"), "(The draft is at revision 3.)"),
        (Published(1, 3, "cp"), "(Published: 3 path(s).)"),
        (Published(1, 0), "(Nothing is new, so nothing was published.)"),
        (Prompted("c", 1, "Do it", 0), ""),
    ],
)
def test_a_person_is_told_what_matters_beside_what_is_said(record: AnyRecord, note: str) -> None:
    assert note_of(record) == note


def test_a_long_command_fits_into_the_line() -> None:
    assert note_of(Happened(1, ToolStarted("a", "run", "x" * 200)), 40) == f"▸ {'x' * 37}…"


def test_what_is_said_is_folded_only_where_a_person_reads_it() -> None:
    text = "one two three\n\n  indented\x07 stays\n" + "x" * 20

    assert words_of(text, None) == text.replace("\x07", "\\x07") + "\n"
    assert words_of("one two three\n\n" + "x" * 20, 8) == f"one two\nthree\n\n{'x' * 20}\n"
    assert words_of("", 8) == ""


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (TurnClosed(1, Ending.COMPLETED, 0), ""),
        (TurnClosed(1, Ending.INTERRUPTED, 0), "(The turn was interrupted.)"),
        (TurnClosed(1, Ending.FAILED, 0, {"userMessage": "It\x07 broke."}), "✗ It\\x07 broke."),
        (TurnClosed(1, Ending.FAILED, 0, {}), "✗ The turn failed."),
        (Revised(1, 3, "cp"), ""),
    ],
)
def test_an_end_that_is_not_good_is_told(record: AnyRecord, told: str) -> None:
    assert ending_of(record) == told


def test_a_program_reads_records_as_they_are_written_down() -> None:
    memo = Remembered(msgspec.Raw(b'{"n":1}'))
    assert record_of(3, Happened(1, memo))["event"] == {"type": "remembered", "memo": {"n": 1}}
    assert record_of(4, Happened(1, Said("a", "Hi"))) == {
        "schema": 1,
        "seq": 4,
        "type": "happened",
        "turn": 1,
        "event": {"type": "said", "item": "a", "text": "Hi"},
    }


def test_a_result_has_the_same_fields_however_it_ended() -> None:
    nothing = result_of(TurnResult())
    result = TurnResult("completed", "Hi", 2, 3, "cp", "/r.html", Used(model="m"), 1)
    everything = result_of(result, session="s", draft="d", error={"code": "X"})

    assert nothing.keys() == everything.keys()
    assert nothing["status"] == "left"
    assert everything == {
        "schema": 1,
        "type": "result",
        "status": "completed",
        "text": "Hi",
        "session": "s",
        "draft": "d",
        "turn": 2,
        "revision": 3,
        "checkpoint": "cp",
        "report": "/r.html",
        "usage": {"type": "used", "model": "m"},
        "refusals": 1,
        "published": False,
        "undo": None,
        "error": {"code": "X"},
    }
