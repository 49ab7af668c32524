"""Player of one scripted turn, as a generator of acts.

Pure: `play` yields an act, and receives its result by `send`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Final

from holdfast.failures import Failure, to_wire
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

MODEL: Final = "rehearsal"


@dataclass(frozen=True, slots=True)
class EmitEvents:
    """Emit events."""

    events: tuple[AnyEvent, ...]


@dataclass(frozen=True, slots=True)
class ChangeFile:
    """Change a file; the result is an `ActResult`."""

    step: WriteStep | EditStep | DeleteStep


@dataclass(frozen=True, slots=True)
class RunCommand:
    """Run a command, with its output as deltas; the result is an `ActResult`."""

    item: str
    step: RunStep


@dataclass(frozen=True, slots=True)
class EmitOutput:
    """Emit `size` bytes of output as deltas; the result is an `ActResult`."""

    item: str
    size: int


@dataclass(frozen=True, slots=True)
class AskQuestion:
    """Ask the person; the result is the answer."""

    asked: QuestionAsked


@dataclass(frozen=True, slots=True)
class PauseFor:
    """Pause for seconds; None blocks the process forever."""

    seconds: float | None


@dataclass(frozen=True, slots=True)
class ExitProcess:
    """Exit the process at once."""

    status: int


@dataclass(frozen=True, slots=True)
class ActResult:
    """Result of an act: an exit status (0 or 1 for file changes), and output."""

    status: int = 0
    output: str = ""
    left_out: int = 0


Act = EmitEvents | ChangeFile | RunCommand | EmitOutput | AskQuestion | PauseFor | ExitProcess
Answer = ActResult | str | None
Play = Generator[Act, Answer, TurnEnded]


class _Over(Exception):
    """Ends the turn; internal to this module."""

    def __init__(self, failure: Failure | None = None) -> None:
        self.failure = failure


def play(turn: ScriptedTurn, number: int) -> Play:
    """Play a turn; its end is emitted and returned."""
    yield EmitEvents((TurnStarted(),))
    ended = TurnEnded(TurnEnding.COMPLETED)
    try:
        for place, step in enumerate(turn.steps, start=1):
            yield from _steps(step, f"{number}.{place}")
    except _Over as over:
        if over.failure is not None:
            ended = TurnEnded(TurnEnding.FAILED, to_wire(over.failure))
    yield EmitEvents((ended,))
    return ended


def _steps(step: ScriptStep, item: str) -> Generator[Act, Answer, None]:
    match step:
        case WriteStep() | EditStep() | DeleteStep():
            yield from _change(step, item)
        case RunStep():
            yield from _run(step, item)
        case AskStep():
            yield from _ask(step, item)
        case FloodStep(flood):
            yield EmitEvents((ToolStarted(item, "print", f"print {flood} bytes"),))
            yield EmitEvents((_ended(item, (yield EmitOutput(item, flood))),))
        case WaitStep(wait):
            yield PauseFor(wait)
        case FailStep(fail):
            raise _Over(Rehearsed(reason=fail))
        case HangStep():
            yield PauseFor(None)
        case CrashStep(crash):
            yield ExitProcess(crash)
        case _:
            yield EmitEvents(_words(step, item))


def _words(step: ScriptStep, item: str) -> tuple[AnyEvent, ...]:
    match step:
        case SayStep(say):
            pieces = tuple(Delta(item, DeltaKind.TEXT, piece) for piece in _pieces(say))
            return (*pieces, TextCompleted(item, say))
        case ThinkStep(think):
            return (ThinkingCompleted(item, think),)
        case ShowPlanStep(plan, done):
            return (PlanUpdated(tuple(_planned(plan, done))),)
        case UseStep(use, output, window):
            return (UsageUpdated(MODEL, use, 0, output, use, window, 0.0),)
        case _:
            raise AssertionError(f"{step} is no step")


def _change(step: WriteStep | EditStep | DeleteStep, item: str) -> Generator[Act, Answer, None]:
    verb = type(step).__name__.removesuffix("Step").lower()
    path = step.write if isinstance(step, WriteStep) else ""
    path = step.edit if isinstance(step, EditStep) else path
    path = step.delete if isinstance(step, DeleteStep) else path
    yield EmitEvents((ToolStarted(item, verb, f"{verb} {path}", {"path": path}),))
    came = _came((yield ChangeFile(step)))
    told: tuple[AnyEvent, ...] = (_ended(item, came),)
    if came.status == 0:
        told = (FilesChanged(item, (path,)), *told)
    yield EmitEvents(told)
    if came.status != 0:
        raise _Over(OffScript(problem=f"{path}: {came.output}"))


def _run(step: RunStep, item: str) -> Generator[Act, Answer, None]:
    yield EmitEvents((ToolStarted(item, "run", step.run, {"command": step.run}),))
    came = _came((yield RunCommand(item, step)))
    yield EmitEvents((_ended(item, came),))
    if step.expect is not None and came.status != step.expect:
        problem = f"`{step.run}` ended with {came.status} and not with {step.expect}"
        raise _Over(OffScript(problem=problem))


def _ask(step: AskStep, item: str) -> Generator[Act, Answer, None]:
    last = len(step.choices) - 1
    choices = tuple(
        AnswerChoice(word, is_refusal=place == last) for place, word in enumerate(step.choices)
    )
    asked = QuestionAsked(item, step.ask, step.detail, choices, item, step.approval)
    answer = yield AskQuestion(asked)
    if answer == asked.refusal:
        yield EmitEvents((TextCompleted(item, "Then I leave the rest."),))
        raise _Over


def _ended(item: str, answer: Answer) -> ToolEnded:
    came = _came(answer)
    return ToolEnded(item, came.status == 0, came.output, came.left_out, came.status)


def _came(answer: Answer) -> ActResult:
    assert isinstance(answer, ActResult), f"{answer} is not what came of it"
    return answer


def _planned(plan: tuple[str, ...], done: int) -> Iterator[PlanStep]:
    for place, text in enumerate(plan):
        if place < done:
            yield PlanStep(text, PlanProgress.DONE)
        else:
            yield PlanStep(text, PlanProgress.BEGUN if place == done else PlanProgress.OPEN)


def _pieces(text: str) -> Iterator[str]:
    """Split text into words with their spaces, as models stream it."""
    start = 0
    for place, letter in enumerate(text):
        if letter.isspace():
            yield text[start : place + 1]
            start = place + 1
    if start < len(text):
        yield text[start:]
