"""Count processes and memory of a sandbox together, where control groups can be made.

Limits of a single process say nothing about a hundred of them. A control group does, and where
none can be made, the caller is told. A group is removed when its last process is gone; what a
killed starter has left is removed by the next one.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from holdfast.confine.core.policy import Limits

_PREFIX: Final = "holdfast-"
_UNIFIED: Final = {"pids": "pids.max", "memory": "memory.max"}
_SINGLE: Final = {"pids": "pids.max", "memory": "memory.limit_in_bytes"}
# Who enters by the first is one thread that moves itself: nobody has to wait for that. By the
# second the whole machine comes to a rest, for milliseconds. Not every hierarchy has the first.
_DOORS: Final = ("tasks", "cgroup.procs")
_MOUNTS: Final = Path("/proc/self/mounts")
_OURS: Final = Path("/proc/self/cgroup")


@dataclass(frozen=True, slots=True)
class Group:
    """A group that nobody is in yet: what it limits, and the way into it."""

    limited: frozenset[str]
    doors: tuple[int, ...]
    directories: tuple[Path, ...]
    locks: tuple[int, ...]

    def close(self) -> None:
        """Remove it if nobody is in it any more; otherwise the next to come will."""
        for descriptor in (*self.doors, *self.locks):
            os.close(descriptor)
        for directory in self.directories:
            with suppress(OSError):
                directory.rmdir()


def make_group(limits: Limits) -> Group:
    """Make a group with these limits, or as many of them as can be had here."""
    wanted = {"pids": limits.processes, "memory": limits.memory_bytes}
    directories, doors, locks = list[Path](), list[int](), list[int]()
    limited: set[str] = set()
    name = f"{_PREFIX}{secrets.token_hex(6)}"
    for parent, files in _parents(wanted).items():
        clean_groups(parent)
        with suppress(OSError):
            directory = parent / name
            directory.mkdir()
            directories.append(directory)
            locks.append(_locked(directory))
            for controller, file in files.items():
                (directory / file).write_text(str(wanted[controller]))
            doors.append(_door(directory))
            limited.update(files)
            with suppress(OSError):  # otherwise the group would swap instead of ending
                (directory / "memory.swap.max").write_text("0")
    return Group(frozenset(limited), tuple(doors), tuple(directories), tuple(locks))


def _door(directory: Path) -> int:
    name = next(name for name in _DOORS if (directory / name).exists())
    return os.open(directory / name, os.O_WRONLY | os.O_CLOEXEC)


def clean_groups(parent: Path) -> None:
    """Remove the groups in a directory that nobody is in and nobody is about to enter."""
    for directory in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            lock = _locked(directory)
            try:
                directory.rmdir()
            finally:
                os.close(lock)


def _locked(directory: Path) -> int:
    lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise
    return lock


def _parents(controllers: Iterable[str]) -> dict[Path, dict[str, str]]:
    """Under which of our own groups to make one, and which files then hold the limits."""
    unified, single = _mounted()
    found: dict[Path, dict[str, str]] = {}
    for line in _read(_OURS).splitlines():
        number, names, path = line.split(":", 2)
        if number == "0" and unified is not None:
            for parent in _delegated(unified / path.lstrip("/")):
                handed = _read(parent / "cgroup.subtree_control").split()
                files = {name: _UNIFIED[name] for name in controllers if name in handed}
                if files:
                    found[parent] = files
                    break
        for name in names.split(","):
            if name in controllers and name in single:
                found[single[name] / path.lstrip("/")] = {name: _SINGLE[name]}
    return {parent: files for parent, files in found.items() if os.access(parent, os.W_OK)}


def _delegated(ours: Path) -> tuple[Path, Path]:
    """A group with processes can have no groups with limits in it; the one around it can."""
    return ours, ours.parent


@cache
def _mounted() -> tuple[Path | None, dict[str, Path]]:
    unified, single = None, dict[str, Path]()
    for line in _read(_MOUNTS).splitlines():
        _, where, kind, options, *_ = line.split(" ")
        if kind == "cgroup2":
            unified = Path(where)
        elif kind == "cgroup":
            single |= {name: Path(where) for name in options.split(",") if name in _SINGLE}
    return unified, single


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
