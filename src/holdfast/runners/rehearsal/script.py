"""Scenario files of the rehearsal runner.

A scenario is TOML or JSON. Each step of a turn has one key that names the action, and its
parameters:

    [[turn]]
    [[turn.step]]
    say = "I will look at the tests."
    [[turn.step]]
    run = "python3 -m unittest"
    expect = 1

After the last turn, the last turn is repeated.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from typing import Annotated, Final, cast

import msgspec

from holdfast.runners.failures import ScenarioInvalid

Text = Annotated[str, msgspec.Meta(max_length=1_000_000)]
Seconds = Annotated[float, msgspec.Meta(ge=0.0, le=86_400.0)]


class ScriptStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base class of the steps of a turn."""


class SayStep(ScriptStep, frozen=True):
    """Emit text, word by word."""

    say: Text


class ThinkStep(ScriptStep, frozen=True):
    """Emit thinking."""

    think: Text


class ShowPlanStep(ScriptStep, frozen=True):
    """Emit a plan, with the number of completed steps."""

    plan: tuple[str, ...]
    done: int = 0


class WriteStep(ScriptStep, frozen=True):
    """Write a file, and create its directories."""

    write: str
    content: Text
    mode: int | None = None


class EditStep(ScriptStep, frozen=True):
    """Replace the only occurrence of a text in a file."""

    edit: str
    old: Text
    new: Text


class DeleteStep(ScriptStep, frozen=True):
    """Remove a file."""

    delete: str


class RunStep(ScriptStep, frozen=True):
    """Run a shell command; another exit status than expected ends the turn."""

    run: Text
    expect: int | None = None
    stays: bool = False  # keeps running after the end of the turn


class AskStep(ScriptStep, frozen=True):
    """Ask the person; without choices, for any text. A refusal skips the rest of the turn."""

    ask: Text
    choices: tuple[str, ...] = ("yes", "no")
    detail: Text = ""
    approval: bool = False


class UseStep(ScriptStep, frozen=True):
    """Report token usage."""

    use: int
    output: int = 0
    window: int | None = None


class WaitStep(ScriptStep, frozen=True):
    """Pause."""

    wait: Seconds


class FloodStep(ScriptStep, frozen=True):
    """Emit this many bytes as output of a tool."""

    flood: Annotated[int, msgspec.Meta(ge=0, le=1 << 40)]


class FailStep(ScriptStep, frozen=True):
    """End the turn with a failure."""

    fail: Text


class HangStep(ScriptStep, frozen=True):
    """Block the process: only a kill helps."""

    hang: bool


class CrashStep(ScriptStep, frozen=True):
    """Exit at once with this status, or by this signal if it is negative."""

    crash: Annotated[int, msgspec.Meta(ge=-64, le=255)]


STEPS: Final[Mapping[str, type[ScriptStep]]] = {
    "say": SayStep,
    "think": ThinkStep,
    "plan": ShowPlanStep,
    "write": WriteStep,
    "edit": EditStep,
    "delete": DeleteStep,
    "run": RunStep,
    "ask": AskStep,
    "use": UseStep,
    "wait": WaitStep,
    "flood": FloodStep,
    "fail": FailStep,
    "hang": HangStep,
    "crash": CrashStep,
}


class ScriptedTurn(msgspec.Struct, frozen=True):
    """The steps for one prompt."""

    steps: tuple[ScriptStep, ...]


class Scenario(msgspec.Struct, frozen=True):
    """A complete scenario."""

    name: str
    turns: tuple[ScriptedTurn, ...]

    def turn(self, number: int) -> ScriptedTurn:
        """Return the turn of a number, from 0; the last turn is repeated."""
        return self.turns[min(number, len(self.turns) - 1)]


def read_scenario(name: str, text: str) -> Scenario:
    """Parse a scenario; raises ScenarioInvalid with the place of the error."""
    raw = _parsed(name, text)
    turns = _listed(raw.get("turn"))
    if not turns:
        raise ScenarioInvalid(name=name, problem="there is no turn in it")
    unknown = sorted(raw.keys() - {"turn", "about"})
    if unknown:
        raise ScenarioInvalid(name=name, problem=f"there is no such thing as {unknown[0]}")
    read = [_turn(name, number, turn) for number, turn in enumerate(turns, 1)]
    return Scenario(name, tuple(read))


def _parsed(name: str, text: str) -> dict[str, object]:
    is_json = text.lstrip().startswith("{")
    read: Callable[[str], object] = json.loads if is_json else tomllib.loads
    try:
        raw = read(text)
    except (ValueError, RecursionError) as error:
        raise ScenarioInvalid(name=name, problem=f"it cannot be read ({error})") from error
    return _mapped(raw)


def _turn(name: str, number: int, raw: object) -> ScriptedTurn:
    where = f"turn {number}"
    steps = _listed(_mapped(raw).get("step"))
    if not steps:
        raise ScenarioInvalid(name=name, problem=f"{where} has no steps")
    read = (_step(name, f"{where}, step {place}", step) for place, step in enumerate(steps, 1))
    return ScriptedTurn(tuple(read))


def _step(name: str, where: str, raw: object) -> ScriptStep:
    words = _mapped(raw)
    verbs = [verb for verb in STEPS if verb in words]
    if len(verbs) != 1:
        known = ", ".join(STEPS)
        raise ScenarioInvalid(name=name, problem=f"{where} is not one of {known}")
    try:
        return msgspec.convert(words, STEPS[verbs[0]])
    except msgspec.ValidationError as error:
        raise ScenarioInvalid(name=name, problem=f"{where}: {error}") from error


def _mapped(raw: object) -> dict[str, object]:
    """Return a mapping, or an empty one for another type."""
    return cast("dict[str, object]", raw) if isinstance(raw, dict) else {}  # untyped TOML or JSON


def _listed(raw: object) -> list[object]:
    """Return a list, or an empty one for another type."""
    return cast("list[object]", raw) if isinstance(raw, list) else []  # untyped TOML or JSON
