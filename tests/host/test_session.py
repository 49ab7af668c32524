"""A session stands where its journal says, whatever is asked of it and whenever its host dies."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from holdfast.failures import Failure
from holdfast.host.failures import (
    ChoiceUnknown,
    CommandReused,
    LeaseOutdated,
    NothingRuns,
    QuestionGone,
    SessionClosed,
    TooManyPrompts,
)
from holdfast.host.model import (
    AbortCommand,
    AnswerCommand,
    AnswerSource,
    AnyRecord,
    AttemptStarted,
    CloseCommand,
    EventRecorded,
    HostCommand,
    LeaseTaken,
    PromptCommand,
    PromptQueued,
    PromptWithdrawn,
    PublicationRecorded,
    PublicationStarted,
    QuestionAnswered,
    RevisionRecorded,
    SessionEnded,
    SessionOpened,
    SteerCommand,
    SteeringAccepted,
    ToolsRepaired,
    TurnAborted,
    TurnBegun,
    TurnClosed,
)
from holdfast.host.session import (
    COMMANDS_KEPT,
    WAITING_MAX,
    SessionPhase,
    SessionState,
    decide,
    fold,
    lead,
    next_turn,
    resumed,
)
from holdfast.runners.model import (
    AnswerChoice,
    QuestionAsked,
    SessionKnown,
    ToolEnded,
    ToolStarted,
    TurnEnding,
    UsageUpdated,
)

NOW = 1_000
OPENED = [SessionOpened("s1", "/p", "d1", "rehearsal", NOW), AttemptStarted(1, NOW)]
ASKED = QuestionAsked(
    "q1", "May I?", choices=(AnswerChoice("yes"), AnswerChoice("no", is_refusal=True))
)
RUNNING = [*OPENED, PromptQueued("c1", 1, "go", NOW), TurnBegun(1, NOW)]
WAITING = [*RUNNING, EventRecorded(1, ToolStarted("t1", "run", "make")), EventRecorded(1, ASKED)]


def stands(*records: AnyRecord) -> SessionState:
    return fold(SessionState(), records)


@pytest.mark.parametrize(
    ("records", "phase"),
    [
        (OPENED, SessionPhase.IDLE),
        ([*OPENED, PromptQueued("c1", 1, "go", NOW)], SessionPhase.IDLE),
        (RUNNING, SessionPhase.RUNNING),
        (WAITING, SessionPhase.WAITING),
        (
            [*WAITING, QuestionAnswered("q1", "yes", AnswerSource.PERSON, "c2")],
            SessionPhase.RUNNING,
        ),
        ([*WAITING, TurnClosed(1, TurnEnding.COMPLETED, NOW)], SessionPhase.IDLE),
        ([*RUNNING, SessionEnded("c2", NOW)], SessionPhase.RUNNING),
        (
            [*RUNNING, SessionEnded("c2", NOW), TurnClosed(1, TurnEnding.INTERRUPTED, NOW)],
            SessionPhase.CLOSED,
        ),
        ([*OPENED, SessionEnded("c2", NOW), AttemptStarted(2, NOW)], SessionPhase.IDLE),
    ],
)
def test_where_it_stands(records: list[AnyRecord], phase: SessionPhase) -> None:
    assert stands(*records).phase is phase


def test_what_is_known_of_it() -> None:
    used = UsageUpdated("m", 1, 2, 3)
    told = [SessionKnown("word"), ToolStarted("t2", "run", "x"), ToolEnded("t2", is_ok=True), used]
    session = stands(
        *WAITING, *(EventRecorded(1, each) for each in told), RevisionRecorded(1, 4, "cp_1")
    )

    assert (session.runner_session, session.used, session.revision) == ("word", used, 4)
    assert (session.tools, session.questions) == (("t1",), (ASKED,))


@pytest.mark.parametrize(
    ("records", "command", "expected"),
    [
        (OPENED, PromptCommand("c1", "go"), PromptQueued("c1", 1, "go", NOW)),
        (RUNNING, PromptCommand("c2", "and"), PromptQueued("c2", 2, "and", NOW)),
        (
            [*RUNNING, PromptQueued("c2", 2, "and", NOW)],
            SteerCommand("c3", "then"),
            PromptQueued("c3", 3, "then", NOW),
        ),
        (
            WAITING,
            AnswerCommand("c2", "q1", "no"),
            QuestionAnswered("q1", "no", AnswerSource.PERSON, "c2"),
        ),
        (WAITING, AbortCommand("c2"), TurnAborted("c2", 1)),
        (WAITING, AbortCommand("c2", turn=1), TurnAborted("c2", 1)),
        (
            [*RUNNING, PromptQueued("c2", 2, "and", NOW)],
            AbortCommand("c3", turn=2),
            PromptWithdrawn("c3", 2),
        ),
        (
            [*OPENED, PromptQueued("c2", 1, "go", NOW)],
            AbortCommand("c3", turn=1),
            PromptWithdrawn("c3", 1),
        ),
        (WAITING, CloseCommand("c2"), SessionEnded("c2", NOW)),
        (OPENED, CloseCommand("c2"), SessionEnded("c2", NOW)),
    ],
)
def test_a_command_is_written_down_once(
    records: list[AnyRecord], command: HostCommand, expected: AnyRecord
) -> None:
    session = stands(*records)
    decided = decide(session, command, at_ms=NOW)

    assert decided == (expected,)
    assert decide(fold(session, decided), command, at_ms=NOW + 1) == ()


@pytest.mark.parametrize(
    ("records", "command", "failure"),
    [
        (RUNNING, PromptCommand("c1", "other"), CommandReused(command="c1")),
        (RUNNING, AbortCommand("c1"), CommandReused(command="c1")),
        (OPENED, AbortCommand("c2"), NothingRuns(session="s1")),
        (RUNNING, AbortCommand("c2", turn=2), NothingRuns(session="s1")),
        (RUNNING, AnswerCommand("c2", "q1", "yes"), QuestionGone(question="q1")),
        (
            WAITING,
            AnswerCommand("c2", "q1", "maybe"),
            ChoiceUnknown(answer="maybe", choices="yes, no"),
        ),
        (
            [*OPENED, SessionEnded("c2", NOW)],
            PromptCommand("c3", "go"),
            SessionClosed(session="s1"),
        ),
        (
            [*RUNNING, *(PromptQueued(f"w{n}", n, "x", NOW) for n in range(WAITING_MAX))],
            PromptCommand("c3", "go"),
            TooManyPrompts(waiting=WAITING_MAX),
        ),
    ],
)
def test_what_makes_no_sense_is_refused(
    records: list[AnyRecord], command: HostCommand, failure: Failure
) -> None:
    with pytest.raises(type(failure)) as caught:
        decide(stands(*records), command, at_ms=NOW)

    assert caught.value == failure


def test_who_steers_is_heard_once_whether_it_was_taken_or_waits() -> None:
    taken = stands(*RUNNING, SteeringAccepted("c2", 1, "mind"))
    waits = stands(*RUNNING, PromptQueued("c2", 2, "mind", NOW))

    assert decide(taken, SteerCommand("c2", "mind"), at_ms=NOW) == ()
    assert decide(waits, SteerCommand("c2", "mind"), at_ms=NOW) == ()


def test_prompts_have_their_turns_in_order() -> None:
    session = stands(*RUNNING, PromptQueued("c2", 2, "b", NOW), PromptQueued("c3", 3, "c", NOW))
    assert next_turn(session, at_ms=NOW) is None
    session = fold(session, [TurnClosed(1, TurnEnding.COMPLETED, NOW)])

    assert next_turn(session, at_ms=NOW) == TurnBegun(2, NOW)


def test_an_older_lease_leads_no_more() -> None:
    session = stands(*OPENED)
    assert lead(session, 0) == ()
    assert lead(session, 3) == (LeaseTaken(3),)
    led = fold(session, [LeaseTaken(3)])

    assert (lead(led, 3), lead(led, 4)) == ((), (LeaseTaken(4),))
    with pytest.raises(LeaseOutdated) as caught:
        lead(led, 2)
    assert caught.value == LeaseOutdated(given=2, newest=3)


def test_an_abort_forgets_what_waits() -> None:
    session = stands(*RUNNING, PromptQueued("c2", 2, "b", NOW), TurnAborted("c3", 1))

    assert (session.waiting, session.is_aborting) == ((), True)


def test_what_is_taken_back_before_its_turn_leaves_the_others() -> None:
    waiting = [PromptQueued("c2", 2, "b", NOW), PromptQueued("c3", 3, "c", NOW)]
    session = stands(*RUNNING, *waiting, PromptWithdrawn("c4", 2))

    assert (session.waiting, session.is_aborting) == ((waiting[1],), False)


def test_who_had_nobody_to_ask_does_not_answer_for_the_person() -> None:
    session = stands(*WAITING)
    answer = AnswerCommand("c9", "q1", "no", AnswerSource.UNATTENDED)
    (decided,) = decide(session, answer, at_ms=NOW)

    assert decided == QuestionAnswered("q1", "no", AnswerSource.UNATTENDED, "c9")
    assert decide(fold(session, [decided]), answer, at_ms=NOW) == ()
    with pytest.raises(CommandReused):
        decide(fold(session, [decided]), AnswerCommand("c9", "q1", "no"), at_ms=NOW)


def test_what_is_to_be_published_is_known_until_it_is() -> None:
    session = stands(*OPENED, PromptQueued("c1", 1, "go", NOW, is_in_place=True), TurnBegun(1, NOW))
    publishing = fold(session, [PublicationStarted(1, "s1/1")])

    assert decide(session, PromptCommand("c1", "go", is_in_place=True), at_ms=NOW) == ()
    assert (session.publishing, publishing.publishing) == (None, "s1/1")
    published = fold(publishing, [PublicationRecorded(1, 1, "cp")])
    assert (published.publishing, published.is_done) == (None, True)
    closed = fold(publishing, [TurnClosed(1, TurnEnding.COMPLETED, NOW)])
    assert (closed.publishing, closed.is_done) == (None, False)


def test_not_all_commands_are_remembered() -> None:
    session = stands(*OPENED)
    for number in range(COMMANDS_KEPT + 1):
        session = fold(session, [SteeringAccepted(f"c{number}", 1, "x")])

    assert (len(session.commands), "c0" in session.commands) == (COMMANDS_KEPT, False)


@pytest.mark.promise("A8")
def test_who_takes_a_crashed_turn_up_stands_on_firm_ground() -> None:
    session = stands(*WAITING)

    assert resumed(session, at_ms=NOW, reason="killed") == (
        AttemptStarted(2, NOW, "killed"),
        QuestionAnswered("q1", "no", AnswerSource.NOBODY),
        ToolsRepaired(1, ("t1",)),
    )


@pytest.mark.promise("A4")
def test_an_ordinary_resume_is_no_crash() -> None:
    assert resumed(stands(*OPENED), at_ms=NOW, reason="killed") == (AttemptStarted(2, NOW),)


class AnyOrder(RuleBasedStateMachine):
    """Whatever is asked and told, a session can be taken up from its journal at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.journal: list[AnyRecord] = list(OPENED)
        self.session = stands(*OPENED)
        self.given: list[tuple[HostCommand, int]] = []
        self.number = 0

    def write(self, *records: AnyRecord) -> None:
        self.journal += records
        self.session = fold(self.session, records)

    @rule(sort=st.sampled_from(["prompt", "steer", "answer", "abort", "withdraw", "close"]))
    def ask(self, sort: str) -> None:
        self.number += 1
        id_ = f"c{self.number}"
        commands: dict[str, HostCommand] = {
            "prompt": PromptCommand(id_, "x"),
            "steer": SteerCommand(id_, "x"),
            "answer": AnswerCommand(id_, f"q{self.number}", "yes"),
            "abort": AbortCommand(id_),
            "withdraw": AbortCommand(id_, turn=self.session.turn + 1),
            "close": CloseCommand(id_),
        }
        command = commands[sort]
        if isinstance(command, AnswerCommand) and self.session.questions:
            command = AnswerCommand(id_, self.session.questions[0].question, "yes")
        try:
            decided = decide(self.session, command, at_ms=NOW)
        except Failure:
            return
        self.write(*decided)
        self.given.append((command, len(self.journal)))

    @rule()
    def ask_again(self) -> None:
        for command, _ in self.given[-3:]:
            assert decide(self.session, command, at_ms=NOW) == ()

    @rule()
    def begin(self) -> None:
        begun = next_turn(self.session, at_ms=NOW)
        if begun is not None:
            self.write(begun)

    @rule(sort=st.sampled_from(["asked", "tool", "done", "closed"]))
    def happen(self, sort: str) -> None:
        if not self.session.is_running:
            return
        turn = self.session.turn
        self.number += 1
        asked = QuestionAsked(
            f"q{self.number}", "?", choices=(AnswerChoice("yes"), AnswerChoice("no", "", True))
        )
        tool = ToolStarted(f"t{self.number}", "run", "x")
        if sort == "closed":
            self.write(TurnClosed(turn, TurnEnding.COMPLETED, NOW))
        elif sort == "done" and self.session.tools:
            self.write(EventRecorded(turn, ToolEnded(self.session.tools[0], is_ok=True)))
        else:
            self.write(EventRecorded(turn, asked if sort == "asked" else tool))

    @rule()
    def crash(self) -> None:
        self.session = stands(*self.journal)
        self.write(*resumed(self.session, at_ms=NOW, reason="killed"))
        after = self.session
        assert (after.tools, after.questions) == ((), ())
        assert after.reason == ("killed" if after.is_running else "")

    @invariant()
    def the_journal_is_all_that_is_known(self) -> None:
        assert stands(*self.journal) == self.session

    @invariant()
    def nobody_waits_for_an_answer_while_nothing_runs(self) -> None:
        assert self.session.is_running or not self.session.questions


AnyOrder.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
test_any_order = AnyOrder.TestCase
