"""Ports between the screen, the conversation and its caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from holdfast.terminal.model import Block, Style

Fragments = list[tuple[str, str]]
"""Fragments of styled text, as prompt_toolkit takes them."""


class Draw(Protocol):
    """Renders blocks; may import its renderer on the first call."""

    def __call__(
        self, blocks: Sequence[Block], style: Style, *, after: Block | None, is_whole: bool
    ) -> str:
        """Blocks as text with escape sequences; `after` is the block before them."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Settings of a terminal client."""

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
    """Callbacks of the screen; none of them may block the event loop."""

    def shown(self, rows: int, columns: int) -> Fragments:
        """The live lines, at most `rows`."""
        ...

    def status(self, columns: int) -> str:
        """The status line."""
        ...

    def enter(self, text: str) -> bool:
        """Execute a typed line; return whether the input buffer may be cleared."""
        ...

    def choose(self, number: int) -> bool:
        """Answer the open question by a choice number, from 1; return whether one was open."""
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
        """Show the last folded block in full."""
        ...


class Commands(Protocol):
    """Runs holdfast commands in the foreground."""

    def run(self, argv: Sequence[str]) -> int:
        """Run a command in the foreground and return its exit status."""
        ...
