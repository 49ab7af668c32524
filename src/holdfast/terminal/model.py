"""What a person is shown of a session, before it is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from holdfast.nouns import printable
from holdfast.runners.model import PlanProgress, PlanStep

_MARKS: Final = {PlanProgress.DONE: "✓", PlanProgress.BEGUN: "▸", PlanProgress.OPEN: "·"}


class Prompted(NamedTuple):
    """What the person has said."""

    text: str
    is_steering: bool = False


class Words(NamedTuple):
    """What the agent says, as Markdown; or what it lets see of its thinking."""

    text: str
    is_thought: bool = False


class Card(NamedTuple):
    """Something that the agent does, or has done; `is_ok` is None for as long as it is not over."""

    title: str
    tool: str = ""
    output: str = ""
    is_ok: bool | None = None
    status: int | None = None
    left_out: int = 0  # characters of the output
    paths: tuple[str, ...] = ()


def changed(paths: tuple[str, ...], *, most: int = 8) -> str:
    """Which files were changed, in a line."""
    more = f" and {len(paths) - most} more" if len(paths) > most else ""
    return f"changed {', '.join(paths[:most])}{more}"


class Plan(NamedTuple):
    """What the agent means to do."""

    steps: tuple[PlanStep, ...]


def step_line(step: PlanStep) -> str:
    """What the agent means to do and how far that is, in a line."""
    return f"  {_MARKS[step.progress]} {printable(step.text)}"


class Note(NamedTuple):
    """A line that is worth knowing; a warning wants to be seen."""

    text: str
    is_warning: bool = False


class Trouble(NamedTuple):
    """Something went wrong: what, what it means, and what can be done, the likeliest first."""

    title: str
    message: str
    offers: tuple[Offer, ...] = ()
    details: tuple[str, ...] = ()


class Offer(NamedTuple):
    """Something that can be done about it: its name, the line that does it, and what follows."""

    label: str
    line: str
    then: str = ""  # a line for when that was done: the person is asked there, and may refuse


Block = Prompted | Words | Card | Plan | Note | Trouble
"""A part of the transcript that will not change any more."""


@dataclass(frozen=True, slots=True)
class Style:
    """How to draw: how wide, in colour or not, on a light ground or not, simply or not."""

    width: int
    is_coloured: bool = True
    is_light: bool = False
    is_plain: bool = False
