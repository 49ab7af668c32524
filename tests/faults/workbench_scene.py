"""One thing that is done to a workbench, and where it has all that is its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from holdfast.workbench.failures import TransactionUnsettled
from tests.faults.workbench_sights import Kept, Views


class Home(NamedTuple):
    """Where one workbench has all that is its own."""

    root: Path

    @property
    def project(self) -> Path:
        """The directory of the person."""
        return self.root / "project"

    @property
    def state(self) -> Path:
        """Where everything of ours is."""
        return self.root / "state"


@dataclass(frozen=True, slots=True)
class Scene:
    """One thing that is done: how the world is before, how it is done, and how it is looked at.

    `act` returns the checkpoints that it made, each with the name of the view that it is of;
    `reopen` which way every transaction went that was found unfinished. `leave` ends what runs.
    """

    lay_out: Callable[[Home], Kept]
    act: Callable[[Home], dict[str, str]]
    reopen: Callable[[Home], list[str]]
    views: Callable[[Home], Views]
    read_back: Callable[[Home, Kept], list[str]]
    is_repeatable: bool = False  # done again, it is done already
    undecided: frozenset[str] = frozenset({TransactionUnsettled.code})  # the next opening decides
    leave: Callable[[Home], None] = lambda _: None
