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
    Abort,
    Aborted,
    Answer,
    Answered,
    AnyRecord,
    Begun,
    Close,
    Closed,
    Command,
    Happened,
    Led,
    Opened,
    Prompt,
    Prompted,
    Published,
    Publishing,
    Repaired,
    Revised,
    Steer,
    Steered,
    TurnBegun,
    TurnClosed,
    Who,
    Withdrawn,
)
from holdfast.host.session import (
    COMMANDS_KEPT,
    WAITING_MAX,
    Phase,
    Session,
    decide,
    fold,
    lead,
    next_turn,
    resumed,
)
from holdfast.runners.model import (
    Asked,
    Choice,
    Ending,
    SessionKnown,
    ToolEnded,
    ToolStarted,
    Used,
)

NOW = 1_000
OPENED = [Opened("s1", "/p", "d1", "rehearsal", NOW), Begun(1, NOW)]
ASKED = Asked("q1", "May I?", choices=(Choice("yes"), Choice("no", is_refusal=True)))
RUNNING = [*OPENED, Prompted("c1", 1, "go", NOW), TurnBegun(1, NOW)]
WAITING = [*RUNNING, Happened(1, ToolStarted("t1", "run", "make")), Happened(1, ASKED)]


def stands(*records: AnyRecord) -> Session:
    return fold(Session(), records)


@pytest.mark.parametrize(
    ("records", "phase"),
    [
        (OPENED, Phase.IDLE),
        ([*OPENED, Prompted("c1", 1, "go", NOW)], Phase.IDLE),
        (RUNNING, Phase.RUNNING),
        (WAITING, Phase.WAITING),
        ([*WAITING, Answered("q1", "yes", Who.PERSON, "c2")], Phase.RUNNING),
        ([*WAITING, TurnClosed(1, Ending.COMPLETED, NOW)], Phase.IDLE),
        ([*RUNNING, Closed("c2", NOW)], Phase.RUNNING),
        ([*RUNNING, Closed("c2", NOW), TurnClosed(1, Ending.INTERRUPTED, NOW)], Phase.CLOSED),
        ([*OPENED, Closed("c2", NOW), Begun(2, NOW)], Phase.IDLE),
    ],
)
def test_where_it_stands(records: list[AnyRecord], phase: Phase) -> None:
    assert stands(*records).phase is phase


def test_what_is_known_of_it() -> None:
    used = Used("m", 1, 2, 3)
    told = [SessionKnown("word"), ToolStarted("t2", "run", "x"), ToolEnded("t2", is_ok=True), used]
    session = stands(*WAITING, *(Happened(1, each) for each in told), Revised(1, 4, "cp_1"))

    assert (session.runner_session, session.used, session.revision) == ("word", used, 4)
    assert (session.tools, session.questions) == (("t1",), (ASKED,))


@pytest.mark.parametrize(
    ("records", "command", "expected"),
    [
        (OPENED, Prompt("c1", "go"), Prompted("c1", 1, "go", NOW)),
        (RUNNING, Prompt("c2", "and"), Prompted("c2", 2, "and", NOW)),
        (
            [*RUNNING, Prompted("c2", 2, "and", NOW)],
            Steer("c3", "then"),
            Prompted("c3", 3, "then", NOW),
        ),
        (WAITING, Answer("c2", "q1", "no"), Answered("q1", "no", Who.PERSON, "c2")),
        (WAITING, Abort("c2"), Aborted("c2", 1)),
        (WAITING, Abort("c2", turn=1), Aborted("c2", 1)),
        ([*RUNNING, Prompted("c2", 2, "and", NOW)], Abort("c3", turn=2), Withdrawn("c3", 2)),
        ([*OPENED, Prompted("c2", 1, "go", NOW)], Abort("c3", turn=1), Withdrawn("c3", 1)),
        (WAITING, Close("c2"), Closed("c2", NOW)),
        (OPENED, Close("c2"), Closed("c2", NOW)),
    ],
)
def test_a_command_is_written_down_once(
    records: list[AnyRecord], command: Command, expected: AnyRecord
) -> None:
    session = stands(*records)
    decided = decide(session, command, at_ms=NOW)

    assert decided == (expected,)
    assert decide(fold(session, decided), command, at_ms=NOW + 1) == ()


@pytest.mark.parametrize(
    ("records", "command", "failure"),
    [
        (RUNNING, Prompt("c1", "other"), CommandReused(command="c1")),
        (RUNNING, Abort("c1"), CommandReused(command="c1")),
        (OPENED, Abort("c2"), NothingRuns(session="s1")),
        (RUNNING, Abort("c2", turn=2), NothingRuns(session="s1")),
        (RUNNING, Answer("c2", "q1", "yes"), QuestionGone(question="q1")),
        (WAITING, Answer("c2", "q1", "maybe"), ChoiceUnknown(answer="maybe", choices="yes, no")),
        ([*OPENED, Closed("c2", NOW)], Prompt("c3", "go"), SessionClosed(session="s1")),
        (
            [*RUNNING, *(Prompted(f"w{n}", n, "x", NOW) for n in range(WAITING_MAX))],
            Prompt("c3", "go"),
            TooManyPrompts(waiting=WAITING_MAX),
        ),
    ],
)
def test_what_makes_no_sense_is_refused(
    records: list[AnyRecord], command: Command, failure: Failure
) -> None:
    with pytest.raises(type(failure)) as caught:
        decide(stands(*records), command, at_ms=NOW)

    assert caught.value == failure


def test_who_steers_is_heard_once_whether_it_was_taken_or_waits() -> None:
    taken = stands(*RUNNING, Steered("c2", 1, "mind"))
    waits = stands(*RUNNING, Prompted("c2", 2, "mind", NOW))

    assert decide(taken, Steer("c2", "mind"), at_ms=NOW) == ()
    assert decide(waits, Steer("c2", "mind"), at_ms=NOW) == ()


def test_prompts_have_their_turns_in_order() -> None:
    session = stands(*RUNNING, Prompted("c2", 2, "b", NOW), Prompted("c3", 3, "c", NOW))
    assert next_turn(session, at_ms=NOW) is None
    session = fold(session, [TurnClosed(1, Ending.COMPLETED, NOW)])

    assert next_turn(session, at_ms=NOW) == TurnBegun(2, NOW)


def test_an_older_lease_leads_no_more() -> None:
    session = stands(*OPENED)
    assert lead(session, 0) == ()
    assert lead(session, 3) == (Led(3),)
    led = fold(session, [Led(3)])

    assert (lead(led, 3), lead(led, 4)) == ((), (Led(4),))
    with pytest.raises(LeaseOutdated) as caught:
        lead(led, 2)
    assert caught.value == LeaseOutdated(given=2, newest=3)


def test_an_abort_forgets_what_waits() -> None:
    session = stands(*RUNNING, Prompted("c2", 2, "b", NOW), Aborted("c3", 1))

    assert (session.waiting, session.is_aborting) == ((), True)


def test_what_is_taken_back_before_its_turn_leaves_the_others() -> None:
    waiting = [Prompted("c2", 2, "b", NOW), Prompted("c3", 3, "c", NOW)]
    session = stands(*RUNNING, *waiting, Withdrawn("c4", 2))

    assert (session.waiting, session.is_aborting) == ((waiting[1],), False)


def test_who_had_nobody_to_ask_does_not_answer_for_the_person() -> None:
    session = stands(*WAITING)
    answer = Answer("c9", "q1", "no", Who.UNATTENDED)
    (decided,) = decide(session, answer, at_ms=NOW)

    assert decided == Answered("q1", "no", Who.UNATTENDED, "c9")
    assert decide(fold(session, [decided]), answer, at_ms=NOW) == ()
    with pytest.raises(CommandReused):
        decide(fold(session, [decided]), Answer("c9", "q1", "no"), at_ms=NOW)


def test_what_is_to_be_published_is_known_until_it_is() -> None:
    session = stands(*OPENED, Prompted("c1", 1, "go", NOW, is_in_place=True), TurnBegun(1, NOW))
    publishing = fold(session, [Publishing(1, "s1/1")])

    assert decide(session, Prompt("c1", "go", is_in_place=True), at_ms=NOW) == ()
    assert (session.publishing, publishing.publishing) == (None, "s1/1")
    published = fold(publishing, [Published(1, 1, "cp")])
    assert (published.publishing, published.is_done) == (None, True)
    closed = fold(publishing, [TurnClosed(1, Ending.COMPLETED, NOW)])
    assert (closed.publishing, closed.is_done) == (None, False)


def test_not_all_commands_are_remembered() -> None:
    session = stands(*OPENED)
    for number in range(COMMANDS_KEPT + 1):
        session = fold(session, [Steered(f"c{number}", 1, "x")])

    assert (len(session.commands), "c0" in session.commands) == (COMMANDS_KEPT, False)


@pytest.mark.promise("A8")
def test_who_takes_a_crashed_turn_up_stands_on_firm_ground() -> None:
    session = stands(*WAITING)

    assert resumed(session, at_ms=NOW, reason="killed") == (
        Begun(2, NOW, "killed"),
        Answered("q1", "no", Who.NOBODY),
        Repaired(1, ("t1",)),
    )


@pytest.mark.promise("A4")
def test_an_ordinary_resume_is_no_crash() -> None:
    assert resumed(stands(*OPENED), at_ms=NOW, reason="killed") == (Begun(2, NOW),)


class AnyOrder(RuleBasedStateMachine):
    """Whatever is asked and told, a session can be taken up from its journal at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.journal: list[AnyRecord] = list(OPENED)
        self.session = stands(*OPENED)
        self.given: list[tuple[Command, int]] = []
        self.number = 0

    def write(self, *records: AnyRecord) -> None:
        self.journal += records
        self.session = fold(self.session, records)

    @rule(sort=st.sampled_from(["prompt", "steer", "answer", "abort", "withdraw", "close"]))
    def ask(self, sort: str) -> None:
        self.number += 1
        id_ = f"c{self.number}"
        commands: dict[str, Command] = {
            "prompt": Prompt(id_, "x"),
            "steer": Steer(id_, "x"),
            "answer": Answer(id_, f"q{self.number}", "yes"),
            "abort": Abort(id_),
            "withdraw": Abort(id_, turn=self.session.turn + 1),
            "close": Close(id_),
        }
        command = commands[sort]
        if isinstance(command, Answer) and self.session.questions:
            command = Answer(id_, self.session.questions[0].question, "yes")
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
        asked = Asked(f"q{self.number}", "?", choices=(Choice("yes"), Choice("no", "", True)))
        tool = ToolStarted(f"t{self.number}", "run", "x")
        if sort == "closed":
            self.write(TurnClosed(turn, Ending.COMPLETED, NOW))
        elif sort == "done" and self.session.tools:
            self.write(Happened(turn, ToolEnded(self.session.tools[0], is_ok=True)))
        else:
            self.write(Happened(turn, asked if sort == "asked" else tool))

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
