"""What a person and a program are told of a turn."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.cli.render.turns import TurnResult, ending_of, note_of, record_of, result_of, words_of
from holdfast.host.model import (
    AnswerSource,
    AnyRecord,
    AttemptStarted,
    EventRecorded,
    PromptQueued,
    PublicationRecorded,
    QuestionAnswered,
    RevisionRecorded,
    ToolsRepaired,
    TurnClosed,
)
from holdfast.runners.model import (
    MemoryRecorded,
    NoticeIssued,
    PlanProgress,
    PlanStep,
    PlanUpdated,
    QuestionAsked,
    TextCompleted,
    ToolEnded,
    ToolStarted,
    TurnEnding,
    UsageUpdated,
)


@pytest.mark.parametrize(
    ("record", "note"),
    [
        (EventRecorded(1, ToolStarted("a", "run", "make \x1b[31mtest")), "▸ make \\x1b[31mtest"),
        (EventRecorded(1, ToolEnded("a", is_ok=False, output="x\nbad\n", status=2)), "  ✗ 2: bad"),
        (EventRecorded(1, ToolEnded("a", is_ok=False)), "  ✗ "),
        (EventRecorded(1, ToolEnded("a", is_ok=True, output="fine")), ""),
        (EventRecorded(1, QuestionAsked("q", "May I?")), "? May I?"),
        (EventRecorded(1, NoticeIssued("Slow.")), "! Slow."),
        (
            EventRecorded(
                1,
                PlanUpdated(
                    (PlanStep("one", PlanProgress.DONE), PlanStep("two", PlanProgress.OPEN))
                ),
            ),
            "  ✓ one\n  · two",
        ),
        (EventRecorded(1, TextCompleted("a", "Hello")), ""),
        (AttemptStarted(1, 0), ""),
        (
            AttemptStarted(2, 0, "its host died"),
            "! The agent crashed (its host died); this is attempt 2.",
        ),
        (
            ToolsRepaired(1, ("a", "b")),
            "! 2 step(s) were interrupted, and may or may not have completed.",
        ),
        (QuestionAnswered("q", "no", AnswerSource.NOBODY), "? No answer: no"),
        (QuestionAnswered("q", "", AnswerSource.NOBODY), "? No answer: refused"),
        (
            QuestionAnswered("q", "no", AnswerSource.UNATTENDED),
            "? Refused, because no terminal is attached: no",
        ),
        (QuestionAnswered("q", "yes", AnswerSource.PERSON), ""),
        (RevisionRecorded(1, 3, "cp"), "(The draft is at revision 3.)"),
        (PublicationRecorded(1, 3, "cp"), "(Published: 3 path(s).)"),
        (PublicationRecorded(1, 0), "(Nothing is new, so nothing was published.)"),
        (PromptQueued("c", 1, "Do it", 0), ""),
    ],
)
def test_a_person_is_told_what_matters_beside_what_is_said(record: AnyRecord, note: str) -> None:
    assert note_of(record) == note


def test_a_long_command_fits_into_the_line() -> None:
    assert note_of(EventRecorded(1, ToolStarted("a", "run", "x" * 200)), 40) == f"▸ {'x' * 37}…"


def test_what_is_said_is_folded_only_where_a_person_reads_it() -> None:
    text = "one two three\n\n  indented\x07 stays\n" + "x" * 20

    assert words_of(text, None) == text.replace("\x07", "\\x07") + "\n"
    assert words_of("one two three\n\n" + "x" * 20, 8) == f"one two\nthree\n\n{'x' * 20}\n"
    assert words_of("", 8) == ""


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (TurnClosed(1, TurnEnding.COMPLETED, 0), ""),
        (TurnClosed(1, TurnEnding.INTERRUPTED, 0), "(The turn was interrupted.)"),
        (TurnClosed(1, TurnEnding.FAILED, 0, {"userMessage": "It\x07 broke."}), "✗ It\\x07 broke."),
        (TurnClosed(1, TurnEnding.FAILED, 0, {}), "✗ The turn failed."),
        (RevisionRecorded(1, 3, "cp"), ""),
    ],
)
def test_an_end_that_is_not_good_is_told(record: AnyRecord, told: str) -> None:
    assert ending_of(record) == told


def test_a_program_reads_records_as_they_are_written_down() -> None:
    memo = MemoryRecorded(msgspec.Raw(b'{"n":1}'))
    assert record_of(3, EventRecorded(1, memo))["event"] == {"type": "remembered", "memo": {"n": 1}}
    assert record_of(4, EventRecorded(1, TextCompleted("a", "Hi"))) == {
        "schema": 1,
        "seq": 4,
        "type": "happened",
        "turn": 1,
        "event": {"type": "said", "item": "a", "text": "Hi"},
    }


def test_a_result_has_the_same_fields_however_it_ended() -> None:
    nothing = result_of(TurnResult())
    result = TurnResult("completed", "Hi", 2, 3, "cp", "/r.html", UsageUpdated(model="m"), 1)
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
