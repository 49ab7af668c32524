"""Play one turn of a scenario, one act at a time.

Nothing here touches anything: `play` yields what must be done and is sent what came of it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Final

from holdfast.failures import Failure, to_wire
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

MODEL: Final = "rehearsal"


@dataclass(frozen=True, slots=True)
class Tell:
    """Say what has happened."""

    events: tuple[AnyEvent, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """Change a file as a step says; answered with `Came`."""

    step: Write | Edit | Delete


@dataclass(frozen=True, slots=True)
class Execute:
    """Run a command and tell its output as deltas of the item; answered with `Came`."""

    item: str
    step: Run


@dataclass(frozen=True, slots=True)
class Pour:
    """Tell so many bytes of output as deltas of the item; answered with `Came`."""

    item: str
    size: int


@dataclass(frozen=True, slots=True)
class Inquire:
    """Ask the person; answered with their words."""

    asked: Asked


@dataclass(frozen=True, slots=True)
class Pause:
    """Do nothing for so long; for ever, and deaf, without a time."""

    seconds: float | None


@dataclass(frozen=True, slots=True)
class Die:
    """End the whole process at once."""

    status: int


@dataclass(frozen=True, slots=True)
class Came:
    """What an act came to: an exit status where there is one, else 0 or 1; and what was printed."""

    status: int = 0
    output: str = ""
    left_out: int = 0


Act = Tell | Change | Execute | Pour | Inquire | Pause | Die
Answer = Came | str | None
Play = Generator[Act, Answer, TurnEnded]


class _Over(Exception):
    """The turn ends here; it never leaves this module."""

    def __init__(self, failure: Failure | None = None) -> None:
        self.failure = failure


def play(turn: Turn, number: int) -> Play:
    """Play a turn to its end, which is told as its last event and returned, too."""
    yield Tell((TurnStarted(),))
    ended = TurnEnded(Ending.COMPLETED)
    try:
        for place, step in enumerate(turn.steps, start=1):
            yield from _steps(step, f"{number}.{place}")
    except _Over as over:
        if over.failure is not None:
            ended = TurnEnded(Ending.FAILED, to_wire(over.failure))
    yield Tell((ended,))
    return ended


def _steps(step: Step, item: str) -> Generator[Act, Answer, None]:
    match step:
        case Write() | Edit() | Delete():
            yield from _change(step, item)
        case Run():
            yield from _run(step, item)
        case Ask():
            yield from _ask(step, item)
        case Flood(flood):
            yield Tell((ToolStarted(item, "print", f"print {flood} bytes"),))
            yield Tell((_ended(item, (yield Pour(item, flood))),))
        case Wait(wait):
            yield Pause(wait)
        case Fail(fail):
            raise _Over(Rehearsed(reason=fail))
        case Hang():
            yield Pause(None)
        case Crash(crash):
            yield Die(crash)
        case _:
            yield Tell(_words(step, item))


def _words(step: Step, item: str) -> tuple[AnyEvent, ...]:
    match step:
        case Say(say):
            pieces = tuple(Delta(item, Sort.TEXT, piece) for piece in _pieces(say))
            return (*pieces, Said(item, say))
        case Think(think):
            return (Thought(item, think),)
        case Plan(plan, done):
            return (Planned(tuple(_planned(plan, done))),)
        case Use(use, output, window):
            return (Used(MODEL, use, 0, output, use, window, 0.0),)
        case _:
            raise AssertionError(f"{step} is no step")


def _change(step: Write | Edit | Delete, item: str) -> Generator[Act, Answer, None]:
    verb = type(step).__name__.lower()
    path = step.write if isinstance(step, Write) else ""
    path = step.edit if isinstance(step, Edit) else path
    path = step.delete if isinstance(step, Delete) else path
    yield Tell((ToolStarted(item, verb, f"{verb} {path}", {"path": path}),))
    came = _came((yield Change(step)))
    told: tuple[AnyEvent, ...] = (_ended(item, came),)
    if came.status == 0:
        told = (FilesChanged(item, (path,)), *told)
    yield Tell(told)
    if came.status != 0:
        raise _Over(OffScript(problem=f"{path}: {came.output}"))


def _run(step: Run, item: str) -> Generator[Act, Answer, None]:
    yield Tell((ToolStarted(item, "run", step.run, {"command": step.run}),))
    came = _came((yield Execute(item, step)))
    yield Tell((_ended(item, came),))
    if step.expect is not None and came.status != step.expect:
        problem = f"`{step.run}` ended with {came.status} and not with {step.expect}"
        raise _Over(OffScript(problem=problem))


def _ask(step: Ask, item: str) -> Generator[Act, Answer, None]:
    last = len(step.choices) - 1
    choices = tuple(
        Choice(word, is_refusal=place == last) for place, word in enumerate(step.choices)
    )
    asked = Asked(item, step.ask, step.detail, choices, item, step.approval)
    answer = yield Inquire(asked)
    if answer == asked.refusal:
        yield Tell((Said(item, "Then I leave the rest."),))
        raise _Over


def _ended(item: str, answer: Answer) -> ToolEnded:
    came = _came(answer)
    return ToolEnded(item, came.status == 0, came.output, came.left_out, came.status)


def _came(answer: Answer) -> Came:
    assert isinstance(answer, Came), f"{answer} is not what came of it"
    return answer


def _planned(plan: tuple[str, ...], done: int) -> Iterator[PlanStep]:
    for place, text in enumerate(plan):
        if place < done:
            yield PlanStep(text, Progress.DONE)
        else:
            yield PlanStep(text, Progress.BEGUN if place == done else Progress.OPEN)


def _pieces(text: str) -> Iterator[str]:
    """Word by word, with the space that follows, as models speak."""
    start = 0
    for place, letter in enumerate(text):
        if letter.isspace():
            yield text[start : place + 1]
            start = place + 1
    if start < len(text):
        yield text[start:]
