"""Blocks of a transcript, before they are rendered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from holdfast.nouns import printable
from holdfast.runners.model import PlanProgress, PlanStep

_MARKS: Final = {PlanProgress.DONE: "✓", PlanProgress.BEGUN: "▸", PlanProgress.OPEN: "·"}


class Prompted(NamedTuple):
    """A prompt of the user."""

    text: str
    is_steering: bool = False


class Words(NamedTuple):
    """A message of the agent as Markdown, or its visible reasoning."""

    text: str
    is_thought: bool = False


class Card(NamedTuple):
    """A tool call; `is_ok` is None while it runs."""

    title: str
    tool: str = ""
    output: str = ""
    is_ok: bool | None = None
    status: int | None = None
    left_out: int = 0  # characters of the output
    paths: tuple[str, ...] = ()


def changed(paths: tuple[str, ...], *, most: int = 8) -> str:
    """The changed files in one line."""
    more = f" and {len(paths) - most} more" if len(paths) > most else ""
    return f"changed {', '.join(paths[:most])}{more}"


class Plan(NamedTuple):
    """The plan of the agent."""

    steps: tuple[PlanStep, ...]


def step_line(step: PlanStep) -> str:
    """One step of a plan with its status, in one line."""
    return f"  {_MARKS[step.progress]} {printable(step.text)}"


class Note(NamedTuple):
    """A notice of one line; a warning is highlighted."""

    text: str
    is_warning: bool = False


class Trouble(NamedTuple):
    """A failure: title, message and offers, the likeliest first."""

    title: str
    message: str
    offers: tuple[Offer, ...] = ()
    details: tuple[str, ...] = ()


class Offer(NamedTuple):
    """An offer: its label, the line that executes it, and the line that follows its success."""

    label: str
    line: str
    then: str = ""  # executed if `line` succeeded; `line` asks the user, who may refuse


Block = Prompted | Words | Card | Plan | Note | Trouble
"""A finished part of the transcript."""


@dataclass(frozen=True, slots=True)
class Style:
    """Rendering options: width, colours, light background, plain text."""

    width: int
    is_coloured: bool = True
    is_light: bool = False
    is_plain: bool = False
