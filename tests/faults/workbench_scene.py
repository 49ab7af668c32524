"""One thing that is done to a workbench, and where it has all that is its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from holdfast.confine import LivingPlace, end, places
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


def held_below(home: Home) -> list[LivingPlace]:
    """Every place that somebody holds for a draft of this workbench."""
    root = str(home.root)
    return [each for each in places() if each.holder.directory.startswith(root)]


def end_places(home: Home) -> None:
    """End whatever holds a draft in place."""
    for each in held_below(home):
        end(each.holder.directory)


@dataclass(frozen=True, slots=True)
class Scene:
    """One thing that is done: how the world is before, how it is done, and how it is looked at.

    `act` returns the checkpoints that it made, each with the name of the view that it is of;
    `reopen` which way every transaction went that was found unfinished.
    """

    plan_operations: Callable[[Home], Kept]
    act: Callable[[Home], dict[str, str]]
    reopen: Callable[[Home], list[str]]
    views: Callable[[Home], Views]
    read_back: Callable[[Home, Kept], list[str]]
    is_repeatable: bool = False  # done again, it is done already
    undecided: frozenset[str] = frozenset({TransactionUnsettled.code})  # the next opening decides
    is_layered: bool = False  # somebody holds a place for a draft
