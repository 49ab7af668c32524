"""A turn is played step by step, and ends exactly once whatever comes of its steps."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.failures import to_wire
from holdfast.runners.failures import OffScript, Rehearsed
from holdfast.runners.model import (
    AnswerChoice,
    AnyEvent,
    Delta,
    DeltaKind,
    FilesChanged,
    PlanProgress,
    PlanStep,
    PlanUpdated,
    QuestionAsked,
    TextCompleted,
    ThinkingCompleted,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnEnding,
    TurnStarted,
    UsageUpdated,
)
from holdfast.runners.rehearsal.player import (
    Act,
    ActResult,
    Answer,
    AskQuestion,
    ChangeFile,
    EmitEvents,
    EmitOutput,
    ExitProcess,
    PauseFor,
    RunCommand,
    play,
)
from holdfast.runners.rehearsal.script import (
    AskStep,
    CrashStep,
    DeleteStep,
    EditStep,
    FailStep,
    FloodStep,
    HangStep,
    RunStep,
    SayStep,
    ScriptedTurn,
    ScriptStep,
    ShowPlanStep,
    ThinkStep,
    UseStep,
    WaitStep,
    WriteStep,
)

STARTED, COMPLETED = TurnStarted(), TurnEnded(TurnEnding.COMPLETED)
ITEM = "7.1"


def fine(act: Act) -> Answer:
    return ActResult() if isinstance(act, ChangeFile | RunCommand | EmitOutput) else "yes"


def played(
    *steps: ScriptStep, answer: Callable[[Act], Answer] = fine
) -> tuple[list[Act], TurnEnded]:
    acts: list[Act] = []
    playing, last = play(ScriptedTurn(steps), 7), None
    while True:
        try:
            act = playing.send(last)
        except StopIteration as stop:
            return acts, stop.value
        acts.append(act)
        last = None if isinstance(act, EmitEvents | PauseFor | ExitProcess) else answer(act)


def told(acts: list[Act]) -> list[AnyEvent]:
    return [event for act in acts if isinstance(act, EmitEvents) for event in act.events]


ASKED = QuestionAsked(
    ITEM, "May I?", "", (AnswerChoice("yes"), AnswerChoice("no", is_refusal=True)), ITEM, True
)


@pytest.mark.parametrize(
    ("step", "acts"),
    [
        (
            SayStep("Hello you"),
            [
                EmitEvents(
                    (
                        Delta(ITEM, DeltaKind.TEXT, "Hello "),
                        Delta(ITEM, DeltaKind.TEXT, "you"),
                        TextCompleted(ITEM, "Hello you"),
                    )
                )
            ],
        ),
        (ThinkStep("Hm"), [EmitEvents((ThinkingCompleted(ITEM, "Hm"),))]),
        (
            ShowPlanStep(("a", "b", "c"), done=1),
            [
                EmitEvents(
                    (
                        PlanUpdated(
                            (
                                PlanStep("a", PlanProgress.DONE),
                                PlanStep("b", PlanProgress.BEGUN),
                                PlanStep("c", PlanProgress.OPEN),
                            )
                        ),
                    )
                )
            ],
        ),
        (UseStep(10, 5, 100), [EmitEvents((UsageUpdated("rehearsal", 10, 0, 5, 10, 100, 0.0),))]),
        (WaitStep(1.5), [PauseFor(1.5)]),
        (HangStep(True), [PauseFor(None)]),
        (CrashStep(-9), [ExitProcess(-9)]),
        (
            EditStep("f", "a", "b"),
            [
                EmitEvents((ToolStarted(ITEM, "edit", "edit f", {"path": "f"}),)),
                ChangeFile(EditStep("f", "a", "b")),
                EmitEvents((FilesChanged(ITEM, ("f",)), ToolEnded(ITEM, True, status=0))),
            ],
        ),
        (
            RunStep("make", expect=0),
            [
                EmitEvents((ToolStarted(ITEM, "run", "make", {"command": "make"}),)),
                RunCommand(ITEM, RunStep("make", expect=0)),
                EmitEvents((ToolEnded(ITEM, True, status=0),)),
            ],
        ),
        (
            FloodStep(99),
            [
                EmitEvents((ToolStarted(ITEM, "print", "print 99 bytes"),)),
                EmitOutput(ITEM, 99),
                EmitEvents((ToolEnded(ITEM, True, status=0),)),
            ],
        ),
        (AskStep("May I?", approval=True), [AskQuestion(ASKED)]),
    ],
)
def test_each_step_is_a_few_acts(step: ScriptStep, acts: list[Act]) -> None:
    assert played(step) == ([EmitEvents((STARTED,)), *acts, EmitEvents((COMPLETED,))], COMPLETED)


def test_who_is_refused_leaves_the_rest() -> None:
    acts, ended = played(AskStep("May I?", approval=True), CrashStep(1), answer=lambda _: "no")

    assert ended == COMPLETED
    assert told(acts) == [STARTED, TextCompleted(ITEM, "Then I leave the rest."), COMPLETED]


@pytest.mark.parametrize(
    ("step", "answer", "failure"),
    [
        (
            RunStep("make", expect=0),
            ActResult(2, "no"),
            OffScript(problem="`make` ended with 2 and not with 0"),
        ),
        (
            DeleteStep("f"),
            ActResult(1, "nothing is there"),
            OffScript(problem="f: nothing is there"),
        ),
        (WriteStep("f", "x"), ActResult(1, "full"), OffScript(problem="f: full")),
        (FailStep("no model"), ActResult(), Rehearsed(reason="no model")),
    ],
)
def test_what_is_not_as_expected_fails_the_turn(
    step: ScriptStep, answer: ActResult, failure: OffScript | Rehearsed
) -> None:
    acts, ended = played(step, SayStep("never"), answer=lambda _: answer)

    assert ended == TurnEnded(TurnEnding.FAILED, to_wire(failure))
    assert told(acts)[-1] == ended
    assert not any(isinstance(event, TextCompleted) for event in told(acts))


STEPS = st.sampled_from(
    [
        SayStep("a b"),
        ThinkStep("t"),
        EditStep("f", "a", "b"),
        RunStep("r", expect=0),
        RunStep("r"),
        AskStep("q"),
        FloodStep(3),
        FailStep("f"),
        WaitStep(0.0),
    ]
)
ANSWERS = st.sampled_from([ActResult(), ActResult(1, "x"), ActResult(2, "y", 5)])


@given(st.lists(STEPS, max_size=8), st.lists(ANSWERS, min_size=20, max_size=20), st.booleans())
def test_a_turn_begins_and_ends_once_and_every_tool_has_its_end(
    steps: list[ScriptStep], answers: list[ActResult], is_allowed: bool
) -> None:
    left = iter(answers)

    def answer(act: Act) -> Answer:
        return ("yes" if is_allowed else "no") if isinstance(act, AskQuestion) else next(left)

    acts, ended = played(*steps, answer=answer)
    events = told(acts)

    assert [e for e in events if isinstance(e, TurnStarted)] == [events[0]]
    assert [e for e in events if isinstance(e, TurnEnded)] == [events[-1]] == [ended]
    started = [event.item for event in events if isinstance(event, ToolStarted)]
    assert [event.item for event in events if isinstance(event, ToolEnded)] == started
