"""What goes on is shown in the rows that there are, the newest nearest to where one types."""

from __future__ import annotations

import pytest

from holdfast.host import DeltasReceived, Reconnecting, RecordReceived, Unresponsive, WaitingSeen
from holdfast.host.model import EventRecorded, PromptQueued, TurnBegun
from holdfast.runners.model import (
    AnswerChoice,
    Delta,
    DeltaKind,
    PlanProgress,
    PlanStep,
    PlanUpdated,
    QuestionAsked,
    ToolEnded,
    ToolStarted,
)
from holdfast.terminal.live_view import helper_lines, live, status_line
from holdfast.terminal.transcript import Transcript


def text(transcript: Transcript, rows: int = 20, columns: int = 40) -> str:
    return "".join(piece for _, piece in live(transcript, rows, columns))


@pytest.fixture
def busy() -> Transcript:
    transcript = Transcript()
    asked = QuestionAsked(
        "q", "May I?", "It is \x1b[2Jbig", (AnswerChoice("yes", "do it"), AnswerChoice("no"))
    )
    for record in (
        PromptQueued("c", 1, "Go", 0),
        TurnBegun(1, 0),
        PromptQueued("d", 2, "And then\nthis", 0),
        EventRecorded(1, ToolStarted("t", "shell", "make \x1b]0;x\x07")),
        EventRecorded(
            1,
            PlanUpdated(
                (PlanStep("look", PlanProgress.DONE), PlanStep("mend", PlanProgress.BEGUN))
            ),
        ),
        EventRecorded(1, asked),
    ):
        transcript.take(RecordReceived(1, record))
    deltas = (
        Delta("s", DeltaKind.TEXT, "I say"),
        Delta("t", DeltaKind.OUTPUT, "".join(map(str, range(9)))),
    )
    transcript.take(DeltasReceived(deltas))
    return transcript


def test_everything_that_goes_on_is_there_and_harmless(busy: Transcript) -> None:
    assert text(busy).splitlines() == [
        "",
        "I say",
        "● make \\x1b]0;x\\x07",
        "  │ 012345678",
        "",
        "  ✓ look",
        "  ▸ mend",
        "",
        "queued: And then this",
        "? May I?",
        "  It is \\x1b[2Jbig",
        "  1 yes — do it",
        "  2 no",
    ]


@pytest.mark.parametrize("rows", [1, 3, 5, 8])
def test_what_is_asked_has_the_first_right_to_the_rows(busy: Transcript, rows: int) -> None:
    lines = text(busy, rows).splitlines()

    assert len(lines) == rows
    assert lines[-1] == "  2 no"


@pytest.mark.parametrize("rows", range(14, 40))
def test_nothing_is_left_out_where_there_is_room(busy: Transcript, rows: int) -> None:
    assert text(busy, rows) == text(busy, 100)


@pytest.mark.parametrize("columns", [12, 40, 200])
def test_no_line_is_wider_than_the_window(busy: Transcript, columns: int) -> None:
    assert all(len(line) < columns for line in text(busy, columns=columns).splitlines())


@pytest.mark.promise("A5")
@pytest.mark.promise("A7")
def test_trouble_with_the_backend_is_said_in_the_words_that_were_promised(busy: Transcript) -> None:
    busy.take(Reconnecting(1.0))
    busy.take(Unresponsive(3))

    assert "reconnecting…" in text(busy)
    assert "backend unresponsive — restart?" in text(busy, columns=80)


def test_a_question_is_folded_between_words() -> None:
    transcript = Transcript()
    asked = QuestionAsked("q", "May I remove the directory build outside of the sandbox?")
    transcript.take(RecordReceived(1, EventRecorded(1, asked)))

    assert text(transcript).splitlines()[1:] == [
        "? May I remove the directory build",
        "  outside of the sandbox?",
    ]


def test_of_much_that_is_said_the_end_is_shown() -> None:
    transcript = Transcript()
    transcript.take(DeltasReceived((Delta("s", DeltaKind.TEXT, "word " * 3_000 + "end"),)))

    lines = text(transcript, 8).splitlines()
    assert len(lines) == 7
    assert lines[-1].endswith("end")


def test_nothing_goes_on_where_nothing_does() -> None:
    assert live(Transcript(), 5, 80) == []


def test_the_status_says_who_and_how_far(busy: Transcript) -> None:
    assert status_line(busy, "codex", "draft_12345678", 80) == (
        "waiting · codex · Ctrl-C ends the turn · draft 12345678"
    )
    assert status_line(Transcript(), "codex", "d", 14) == "idle · codex"


def test_helpers_are_listed_with_what_they_did_last() -> None:
    transcript = Transcript()
    assert helper_lines(transcript) == ["The agent has no helpers."]
    for event in (
        ToolStarted("1", "sub_agent", "Sub-agent: look"),
        ToolStarted("2", "sub_agent", "Sub-agent: mend"),
        ToolStarted("3", "shell", "make"),
        ToolStarted("4", "sub_agent", "Sub-agent: fail"),
        ToolEnded("1", is_ok=True, output="▸ read a\nIt is there.\n"),
        ToolEnded("4", is_ok=False),
    ):
        transcript.take(RecordReceived(1, EventRecorded(1, event)))
    transcript.take(DeltasReceived((Delta("2", DeltaKind.OUTPUT, "I begin.\n▸ edit a\n"),)))

    assert helper_lines(transcript) == [
        "  1 ✓ Sub-agent: look",
        "      It is there.",
        "  2 ✗ Sub-agent: fail",
        "  3 ▸ Sub-agent: mend",
        "      ▸ edit a",
        "/agents NUMBER shows all of one.",
    ]
    assert transcript.agents()[2].output == "I begin.\n▸ edit a\n"


@pytest.mark.promise("A5", "A9")
def test_a_silent_model_is_named_and_the_backend_is_not_blamed(busy: Transcript) -> None:
    busy.take(WaitingSeen("openai/gpt-5", 45.4))
    assert "waiting for openai/gpt-5, 45 s" in text(busy, columns=80)
    assert "backend unresponsive" not in text(busy, columns=80)

    busy.take(WaitingSeen("openai/gpt-5", 4.0))
    assert "waiting for" not in text(busy, columns=80)
