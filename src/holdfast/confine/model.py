"""Data types of places and sandboxes: specification, holder, policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Final, Self, cast

from holdfast.nouns import CREATION_DENIED

HOLDER_VERSION = 1
PROTECTED: Final = CREATION_DENIED
ENVIRONMENT: Final = (
    "CI",
    "COLORTERM",
    "COLUMNS",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "LINES",
    "NO_COLOR",
    "PATH",
    "TERM",
    "TZ",
)


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
        """Decode a holder from plain data; None if the data is not a holder record."""
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
    """A place with a living holder, and the number of other processes in it."""

    holder: Holder
    processes: int


class PlaceStep(StrEnum):
    """What is done in order to make a place."""

    NAMESPACES = "namespaces"
    MAPS = "maps"
    OVERLAY = "overlay"
    HIDING = "hiding"
    PROC = "proc"
    PROGRAM = "program"


class Network(StrEnum):
    """Whom a process can reach."""

    NONE = "none"  # itself, and who listens in the network that is made for it
    HOST = "host"  # everyone whom we can reach


class Strength(StrEnum):
    """How well a process is shut in."""

    FULL = "full"
    REDUCED = "reduced"


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """How much of the machine a process may take."""

    processes: int = 1024
    memory_bytes: int = 8 << 30
    file_bytes: int = 16 << 30
    open_files: int = 8192
    temporary_bytes: int = 2 << 30


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    """What a process may touch; what is not named here it does not even see.

    Paths are absolute. `protected` are names below each writable path that stay as they are, also
    when there is nothing of that name yet; `unguarded` are those of the writable paths for which
    that does not hold, such as one for temporary files. A variable reaches the process only if
    `environment` matches its name; one that looks like a secret, only if it is spelt out there.
    """

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    protected: tuple[str, ...] = PROTECTED
    unguarded: tuple[str, ...] = ()
    network: Network = Network.NONE
    has_unix_sockets: bool = False
    environment: tuple[str, ...] = ENVIRONMENT
    limits: ResourceLimits = field(default_factory=ResourceLimits)
    strength_least: Strength = Strength.REDUCED

    @property
    def guarded(self) -> tuple[str, ...]:
        """The writable paths below which names are protected."""
        return tuple(path for path in self.writable if path not in self.unguarded)
