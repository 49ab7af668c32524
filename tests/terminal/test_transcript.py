"""What is over is told once, in order; what goes on is kept until it is over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.failures import to_wire
from holdfast.host import (
    DeltasReceived,
    Reconnected,
    Reconnecting,
    RecordReceived,
    Responsive,
    Unresponsive,
)
from holdfast.host import JournalTrouble as Unkept
from holdfast.host.failures import HostCrashed
from holdfast.host.model import (
    AnswerSource,
    AnyRecord,
    AttemptStarted,
    EventRecorded,
    QuestionAnswered,
    SessionEnded,
    SessionOpened,
    SteeringAccepted,
    ToolsRepaired,
    TurnAborted,
    TurnBegun,
    TurnClosed,
)
from holdfast.host.model import PromptQueued as PromptedRecord
from holdfast.runners.model import (
    AnswerChoice,
    AnyEvent,
    Delta,
    DeltaKind,
    FilesChanged,
    NoticeIssued,
    PlanProgress,
    PlanStep,
    PlanUpdated,
    QuestionAsked,
    TextCompleted,
    ThinkingCompleted,
    ToolEnded,
    ToolStarted,
    TurnEnding,
    UsageUpdated,
)
from holdfast.terminal.model import Block, Card, Note, Plan, Prompted, Trouble, Words
from holdfast.terminal.transcript import LIVE_MOST, Transcript

BEGIN = (SessionOpened("s", "/p", "d", "r", 0), PromptedRecord("c", 1, "Go", 0), TurnBegun(1, 0))


def fed(transcript: Transcript, *records: AnyRecord) -> list[Block]:
    """What is over by these records."""
    return [block for each in records for block in transcript.take(RecordReceived(1, each))]


def begun() -> Transcript:
    transcript = Transcript()
    fed(transcript, *BEGIN)
    return transcript


def happened(*events: AnyEvent) -> list[AnyRecord]:
    return [EventRecorded(1, event) for event in events]


def test_a_turn_is_told_block_by_block() -> None:
    transcript = Transcript()

    assert fed(transcript, *BEGIN) == [Prompted("Go")]
    assert transcript.is_busy
    assert fed(
        transcript,
        *happened(
            ThinkingCompleted("1", "Hm"), TextCompleted("2", "I *will*."), TextCompleted("3", " ")
        ),
    ) == [
        Words("Hm", is_thought=True),
        Words("I *will*."),
    ]
    started = happened(ToolStarted("4", "shell", "make"), FilesChanged("4", ("a",)))
    assert fed(transcript, *started) == []
    assert transcript.cards == {"4": Card("make", "shell", paths=("a",))}
    assert fed(transcript, *happened(ToolEnded("4", False, "no", 7, 2))) == [
        Card("make", "shell", "no", False, 2, 7, ("a",))
    ]
    assert fed(transcript, TurnClosed(1, TurnEnding.COMPLETED, 0, report="/r")) == []
    assert (transcript.report, transcript.is_busy) == ("/r", False)


def test_what_is_being_said_grows_and_goes_when_it_is_said() -> None:
    transcript = begun()
    transcript.take(
        DeltasReceived((Delta("1", DeltaKind.TEXT, "Hel"), Delta("1", DeltaKind.TEXT, "lo")))
    )
    fed(transcript, *happened(ToolStarted("2", "shell", "make")))
    transcript.take(DeltasReceived((Delta("2", DeltaKind.OUTPUT, "line\n"),)))

    assert transcript.live["1"].text == "Hello"
    assert transcript.cards["2"].output == "line\n"
    assert fed(transcript, *happened(TextCompleted("1", "Hello!"))) == [Words("Hello!")]
    assert transcript.live == {}


def test_only_the_end_of_what_grows_is_kept() -> None:
    transcript = begun()
    for _ in range(5):
        transcript.take(DeltasReceived((Delta("1", DeltaKind.TEXT, "x" * LIVE_MOST),)))

    assert len(transcript.live["1"].text) == LIVE_MOST


def test_what_became_void_is_shown_before_what_is_said_in_its_place() -> None:
    transcript = begun()
    transcript.take(
        DeltasReceived((Delta("1", DeltaKind.THOUGHT, "Hm"), Delta("2", DeltaKind.TEXT, "It i")))
    )
    failure = to_wire(HostCrashed(session="s", turn=1, reason="killed"))

    assert fed(
        transcript, *happened(NoticeIssued("It begins anew.", failure), TextCompleted("3", "Yes."))
    ) == [
        Words("Hm", is_thought=True),
        Note("(This was cut off, and is not kept.)", is_warning=True),
        Words("It i"),
        Note("(This was cut off, and is not kept.)", is_warning=True),
        Note("It begins anew.", is_warning=True),
        Words("Yes."),
    ]
    assert fed(transcript, TurnClosed(1, TurnEnding.COMPLETED, 0)) == []


@pytest.mark.promise("A4")
def test_a_crash_flushes_what_was_shown_and_says_that_it_is_not_kept() -> None:
    transcript = begun()
    fed(transcript, *happened(ToolStarted("2", "shell", "make")))
    transcript.take(DeltasReceived((Delta("1", DeltaKind.TEXT, "Hel"),)))
    failure = to_wire(HostCrashed(session="s", turn=1, reason="killed"))
    crash = (
        AttemptStarted(2, 0, "killed"),
        ToolsRepaired(1, ("2",)),
        TurnClosed(1, TurnEnding.FAILED, 0, failure),
    )
    blocks = fed(transcript, *crash)

    assert blocks[:-1] == [
        Note("A new process has taken this session up: killed.", is_warning=True),
        Note("1 step was interrupted, and may or may not have completed.", is_warning=True),
        Words("Hel"),
        Note("(This was cut off, and is not kept.)", is_warning=True),
        Card("make", "shell", is_ok=False),
    ]
    assert isinstance(blocks[-1], Trouble)
    assert (transcript.live, transcript.cards) == ({}, {})


def test_an_ordinary_resume_is_no_crash() -> None:
    assert fed(begun(), AttemptStarted(2, 0)) == []


def test_a_question_waits_until_it_is_answered() -> None:
    transcript = begun()
    asked = QuestionAsked(
        "q", "May I?", choices=(AnswerChoice("yes"), AnswerChoice("no", is_refusal=True))
    )
    fed(transcript, *happened(asked))

    assert transcript.question == asked
    assert fed(transcript, QuestionAnswered("q", "yes", AnswerSource.PERSON)) == [
        Note("May I? — yes")
    ]
    assert transcript.session.questions == ()
    fed(transcript, *happened(asked))
    assert fed(transcript, QuestionAnswered("q", "no", AnswerSource.NOBODY)) == [
        Note("May I? — no answer: no", is_warning=True)
    ]


def test_a_plan_that_was_not_carried_out_is_shown_at_the_end() -> None:
    transcript = begun()
    steps = (PlanStep("a", PlanProgress.DONE), PlanStep("b", PlanProgress.OPEN))
    fed(transcript, *happened(PlanUpdated(steps)))

    assert transcript.plan == steps
    assert fed(transcript, TurnClosed(1, TurnEnding.INTERRUPTED, 0)) == [
        Plan(steps),
        Note("The turn was interrupted; what it has done so far is in the draft."),
    ]


def test_what_cannot_be_written_down_is_trouble_until_it_can() -> None:
    transcript = begun()
    failure = to_wire(HostCrashed(session="s", turn=1, reason="x"))
    first = transcript.take(Unkept(failure))

    assert isinstance(first[0], Trouble)
    assert transcript.take(Unkept(failure)) == []
    assert transcript.unkept == failure
    assert transcript.take(Unkept(None)) == [Note("Everything is written down again.")]
    assert transcript.unkept is None


def test_the_connection_is_told_of_while_it_is_bad() -> None:
    transcript = begun()
    for seen, claims in (
        (Reconnecting(1.0), (True, False)),
        (Reconnected(2), (False, False)),
        (Unresponsive(3), (False, True)),
        (Responsive(), (False, False)),
    ):
        transcript.take(seen)
        assert (transcript.is_reconnecting, transcript.is_unresponsive) == claims


def test_the_rest_is_worth_a_line_or_nothing() -> None:
    transcript = begun()

    assert fed(transcript, SteeringAccepted("c2", 1, "And this")) == [
        Prompted("And this", is_steering=True)
    ]
    assert fed(transcript, *happened(NoticeIssued("Careful"), UsageUpdated("m"))) == [
        Note("Careful", True)
    ]
    assert fed(transcript, TurnAborted("c3", 1), SessionEnded("c4", 0)) == [
        Note("Ending the turn."),
        Note("The session was ended; the conversation is kept."),
    ]


events = st.sampled_from(
    [
        TextCompleted("1", "a"),
        ThinkingCompleted("2", "b"),
        ToolStarted("3", "t", "x"),
        ToolEnded("3", True, "o"),
        ToolEnded("9", False, "never begun"),
        FilesChanged("9", ("a",)),
        PlanUpdated(()),
        QuestionAsked("q", "?"),
        NoticeIssued("n"),
        UsageUpdated("m"),
    ]
)


@given(st.lists(events))
def test_any_order_of_events_is_shown_and_leaves_nothing_going_on(order: list[AnyEvent]) -> None:
    transcript = begun()
    fed(transcript, *happened(*order), TurnClosed(1, TurnEnding.COMPLETED, 0))

    assert (transcript.live, transcript.cards, transcript.plan) == ({}, {}, ())
    assert transcript.question is None
