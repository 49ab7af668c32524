"""Say which process to start, and how."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.confine import Entry
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
    `way` leads it into a place or a sandbox; if `is_led`, the terminal is for one that it starts.
    """

    key: str
    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    arg0: str | None = None
    terminal: Terminal | None = None
    pipe_stdin: bool = False
    way: Entry | None = None
    is_led: bool = False

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What goes to the keeper beside the order."""
        way = self.way
        return () if way is None else (*way.namespaces, *way.groups, *way.files)

    def message(self) -> Message:
        """The order as the keeper reads it."""
        terminal = self.terminal and {"rows": self.terminal.rows, "cols": self.terminal.cols}
        plain: Message = {
            "key": self.key,
            "argv": list(self.argv),
            "cwd": self.cwd,
            "env": dict(self.env),
            "arg0": self.arg0,
            "terminal": terminal,
            "pipe_stdin": self.pipe_stdin,
        }
        return plain if self.way is None else plain | {"entry": _entry(self.way, self.is_led)}


def _entry(way: Entry, is_led: bool) -> Message:
    fence = way.fence and {
        "files": way.fence.files,
        "network": way.fence.network,
        "scopes": way.fence.scopes,
        "paths": [path for path, _ in way.fence.grants],
        "rights": [rights for _, rights in way.fence.grants],
    }
    return {
        "program": way.program,
        "namespaces": len(way.namespaces),
        "groups": len(way.groups),
        "carried": list(way.files.values()),
        "limits": [each for limit in way.limits for each in limit],
        "fence": fence,
        "filter": base64.b64encode(way.filter).decode("ascii"),
        "shields": list(way.shields),
        "is_unprivileged": way.is_unprivileged,
        "is_led": is_led,
    }
