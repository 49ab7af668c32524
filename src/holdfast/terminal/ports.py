"""What a screen needs of the conversation that it shows, and what that needs from outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from holdfast.terminal.model import Block, Style

Fragments = list[tuple[str, str]]
"""Pieces of text, each with its style."""


class Draw(Protocol):
    """Draws blocks; what it takes to do so may be loaded when it is first done."""

    def __call__(
        self, blocks: Sequence[Block], style: Style, *, after: Block | None, is_whole: bool
    ) -> str:
        """Blocks as text with colours; `after` is the block that stands before them already."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a conversation is about, and how it is shown."""

    draft: str
    runner: str
    root: Path  # where names of files are completed
    history: Path
    draw: Draw
    options: Callable[[], Sequence[str]]  # how its agent can be told to take a turn
    how: Mapping[str, str]  # prompts are taken from now on, where that is not as before
    is_coloured: bool = True
    is_light: bool = False
    notify: tuple[str, ...] = ("bell", "osc9")  # how a person is called who may look elsewhere
    notify_command: tuple[str, ...] = ()


class Attended(Protocol):
    """A conversation that a person sees and types into; none of these may wait."""

    def shown(self, rows: int, columns: int) -> Fragments:
        """What goes on now, in at most so many rows."""
        ...

    def status(self, columns: int) -> str:
        """Where it stands, in a line."""
        ...

    def enter(self, text: str) -> bool:
        """Take a line that was typed; say whether it may be forgotten."""
        ...

    def choose(self, number: int) -> bool:
        """Take a choice by its number, from 1 on; say whether there was one to take."""
        ...

    def interrupt(self, typed: str) -> bool:
        """Handle Ctrl-C; return whether the input is to be cleared."""
        ...

    def leave(self) -> None:
        """Handle Ctrl-D."""
        ...

    def go_back(self) -> None:
        """Handle Esc Esc: go back to an earlier prompt."""
        ...

    def unfold(self) -> None:
        """Show all of what was folded last."""
        ...


class Commands(Protocol):
    """Our own commands, run in front of the person."""

    def run(self, argv: Sequence[str]) -> int:
        """Run one in the terminal as it is, and return its exit status."""
        ...
