"""A turn is played step by step, and ends exactly once whatever comes of its steps."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.failures import to_wire
from holdfast.runners.failures import OffScript, Rehearsed
from holdfast.runners.model import (
    AnyEvent,
    Asked,
    Choice,
    Delta,
    Ending,
    FilesChanged,
    Planned,
    PlanStep,
    Progress,
    Said,
    Sort,
    Thought,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    Used,
)
from holdfast.runners.rehearsal.player import (
    Act,
    Answer,
    Came,
    Change,
    Die,
    Execute,
    Inquire,
    Pause,
    Pour,
    Tell,
    play,
)
from holdfast.runners.rehearsal.script import (
    Ask,
    Crash,
    Delete,
    Edit,
    Fail,
    Flood,
    Hang,
    Plan,
    Run,
    Say,
    Step,
    Think,
    Turn,
    Use,
    Wait,
    Write,
)

STARTED, COMPLETED = TurnStarted(), TurnEnded(Ending.COMPLETED)
ITEM = "7.1"


def fine(act: Act) -> Answer:
    return Came() if isinstance(act, Change | Execute | Pour) else "yes"


def played(*steps: Step, answer: Callable[[Act], Answer] = fine) -> tuple[list[Act], TurnEnded]:
    acts: list[Act] = []
    playing, last = play(Turn(steps), 7), None
    while True:
        try:
            act = playing.send(last)
        except StopIteration as stop:
            return acts, stop.value
        acts.append(act)
        last = None if isinstance(act, Tell | Pause | Die) else answer(act)


def told(acts: list[Act]) -> list[AnyEvent]:
    return [event for act in acts if isinstance(act, Tell) for event in act.events]


ASKED = Asked(ITEM, "May I?", "", (Choice("yes"), Choice("no", is_refusal=True)), ITEM, True)


@pytest.mark.parametrize(
    ("step", "acts"),
    [
        (
            Say("Hello you"),
            [
                Tell(
                    (
                        Delta(ITEM, Sort.TEXT, "Hello "),
                        Delta(ITEM, Sort.TEXT, "you"),
                        Said(ITEM, "Hello you"),
                    )
                )
            ],
        ),
        (Think("Hm"), [Tell((Thought(ITEM, "Hm"),))]),
        (
            Plan(("a", "b", "c"), done=1),
            [
                Tell(
                    (
                        Planned(
                            (
                                PlanStep("a", Progress.DONE),
                                PlanStep("b", Progress.BEGUN),
                                PlanStep("c", Progress.OPEN),
                            )
                        ),
                    )
                )
            ],
        ),
        (Use(10, 5, 100), [Tell((Used("rehearsal", 10, 0, 5, 10, 100, 0.0),))]),
        (Wait(1.5), [Pause(1.5)]),
        (Hang(True), [Pause(None)]),
        (Crash(-9), [Die(-9)]),
        (
            Edit("f", "a", "b"),
            [
                Tell((ToolStarted(ITEM, "edit", "edit f", {"path": "f"}),)),
                Change(Edit("f", "a", "b")),
                Tell((FilesChanged(ITEM, ("f",)), ToolEnded(ITEM, True, status=0))),
            ],
        ),
        (
            Run("make", expect=0),
            [
                Tell((ToolStarted(ITEM, "run", "make", {"command": "make"}),)),
                Execute(ITEM, Run("make", expect=0)),
                Tell((ToolEnded(ITEM, True, status=0),)),
            ],
        ),
        (
            Flood(99),
            [
                Tell((ToolStarted(ITEM, "print", "print 99 bytes"),)),
                Pour(ITEM, 99),
                Tell((ToolEnded(ITEM, True, status=0),)),
            ],
        ),
        (Ask("May I?", approval=True), [Inquire(ASKED)]),
    ],
)
def test_each_step_is_a_few_acts(step: Step, acts: list[Act]) -> None:
    assert played(step) == ([Tell((STARTED,)), *acts, Tell((COMPLETED,))], COMPLETED)


def test_who_is_refused_leaves_the_rest() -> None:
    acts, ended = played(Ask("May I?", approval=True), Crash(1), answer=lambda _: "no")

    assert ended == COMPLETED
    assert told(acts) == [STARTED, Said(ITEM, "Then I leave the rest."), COMPLETED]


@pytest.mark.parametrize(
    ("step", "answer", "failure"),
    [
        (
            Run("make", expect=0),
            Came(2, "no"),
            OffScript(problem="`make` ended with 2 and not with 0"),
        ),
        (Delete("f"), Came(1, "nothing is there"), OffScript(problem="f: nothing is there")),
        (Write("f", "x"), Came(1, "full"), OffScript(problem="f: full")),
        (Fail("no model"), Came(), Rehearsed(reason="no model")),
    ],
)
def test_what_is_not_as_expected_fails_the_turn(
    step: Step, answer: Came, failure: OffScript | Rehearsed
) -> None:
    acts, ended = played(step, Say("never"), answer=lambda _: answer)

    assert ended == TurnEnded(Ending.FAILED, to_wire(failure))
    assert told(acts)[-1] == ended
    assert not any(isinstance(event, Said) for event in told(acts))


STEPS = st.sampled_from(
    [
        Say("a b"),
        Think("t"),
        Edit("f", "a", "b"),
        Run("r", expect=0),
        Run("r"),
        Ask("q"),
        Flood(3),
        Fail("f"),
        Wait(0.0),
    ]
)
ANSWERS = st.sampled_from([Came(), Came(1, "x"), Came(2, "y", 5)])


@given(st.lists(STEPS, max_size=8), st.lists(ANSWERS, min_size=20, max_size=20), st.booleans())
def test_a_turn_begins_and_ends_once_and_every_tool_has_its_end(
    steps: list[Step], answers: list[Came], is_allowed: bool
) -> None:
    left = iter(answers)

    def answer(act: Act) -> Answer:
        return ("yes" if is_allowed else "no") if isinstance(act, Inquire) else next(left)

    acts, ended = played(*steps, answer=answer)
    events = told(acts)

    assert [e for e in events if isinstance(e, TurnStarted)] == [events[0]]
    assert [e for e in events if isinstance(e, TurnEnded)] == [events[-1]] == [ended]
    started = [event.item for event in events if isinstance(event, ToolStarted)]
    assert [event.item for event in events if isinstance(event, ToolEnded)] == started
