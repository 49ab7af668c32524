"""What is said of places: what one is to be, who holds it, and which ones there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Self, cast

HOLDER_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceSpec:
    """A view to be made: what is written to the project lands in the draft's directory.

    `also` are further directories that are covered like the project: what a worktree keeps outside
    of itself. `hidden` are directories of which nothing is to be seen inside; the draft's own is
    always one of them. All are absolute.
    """

    directory: str
    project: str
    also: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()

    @property
    def covered(self) -> tuple[str, ...]:
        """All that is covered, the project first."""
        return (self.project, *self.also)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The process that a place lives and dies with, such that no later one is taken for it.

    `namespace` says in which namespace of processes the number is meant.
    """

    pid: int
    started: int
    boot: str
    namespace: int
    directory: str
    project: str
    also: tuple[str, ...]
    since: float

    def plain(self) -> dict[str, object]:
        """The same as plain data."""
        return {"version": HOLDER_VERSION, **asdict(self), "also": list(self.also)}

    @classmethod
    def of(cls, data: Mapping[str, object]) -> Self | None:
        """The holder that plain data tells of; None if it is nothing of ours."""
        match data:
            case {
                "version": 1,
                "pid": int(pid),
                "started": int(started),
                "boot": str(boot),
                "namespace": int(namespace),
                "directory": str(directory),
                "project": str(project),
                "also": also,
                "since": float(since),
            } if isinstance(also, list):
                others = cast("list[object]", also)  # it is a list, of who knows what
                return cls(
                    pid=pid,
                    started=started,
                    boot=boot,
                    namespace=namespace,
                    directory=directory,
                    project=project,
                    also=tuple(str(each) for each in others),
                    since=since,
                )
            case _:
                return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LivingPlace:
    """A place that somebody holds now, and how many processes are in it beside the holder."""

    holder: Holder
    processes: int


class Step(StrEnum):
    """What is done in order to make a place."""

    NAMESPACES = "namespaces"
    MAPS = "maps"
    OVERLAY = "overlay"
    HIDING = "hiding"
    PROC = "proc"
    PROGRAM = "program"
