"""Say which process to start, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.exec.keeper.protocol import Message


@dataclass(frozen=True, slots=True)
class Terminal:
    """The size of a process's terminal when it starts."""

    rows: int = 24
    cols: int = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Which process to start, and how; but for a mark in `env`, nothing is added or inherited.

    `key` names it on the whole machine and for ever; `arg0` is what it is told as its own name.
    """

    key: str
    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    arg0: str | None = None
    terminal: Terminal | None = None
    pipe_stdin: bool = False

    def message(self) -> Message:
        """The order as the keeper reads it."""
        terminal = self.terminal and {"rows": self.terminal.rows, "cols": self.terminal.cols}
        return {
            "key": self.key,
            "argv": list(self.argv),
            "cwd": self.cwd,
            "env": dict(self.env),
            "arg0": self.arg0,
            "terminal": terminal,
            "pipe_stdin": self.pipe_stdin,
        }
