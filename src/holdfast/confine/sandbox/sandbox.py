"""Prepare a sandbox: apply a policy to a process entry with bubblewrap or Landlock.

Resource limits (rlimits) apply to single processes; a control group limits processes and memory of
the whole sandbox. `lacks` reports when no control group can be made. A group is removed with its
last process; the next start removes groups that a killed starter left behind.

Decision: docs/decisions/0068-sandbox-by-bubblewrap-or-landlock.md
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from holdfast.confine.entry import ProcessEntry
from holdfast.confine.failures import SandboxRequestUnfit, SandboxUnavailable
from holdfast.confine.filesystem import path_info, resolved
from holdfast.confine.policy import (
    PathType,
    ResourceLimits,
    SandboxPolicy,
    Strength,
    allowed_environment,
    checked,
    is_within,
    search_path,
)
from holdfast.confine.sandbox.bubblewrap import Wrapping, wrapped
from holdfast.confine.sandbox.landlock import LACKS, fenced
from holdfast.confine.sandbox.placeholder_sweeper import watch
from holdfast.confine.sandbox.placeholders import Placeholders
from holdfast.confine.sandbox.preflight import preflight
from holdfast.confine.sandbox.protected_files import wanted_names

_PREFIX: Final = "holdfast-"
_UNIFIED: Final = {"pids": "pids.max", "memory": "memory.max"}
_SINGLE: Final = {"pids": "pids.max", "memory": "memory.limit_in_bytes"}
# Who enters by the first is one thread that moves itself: nobody has to wait for that. By the
# second the whole machine comes to a rest, for milliseconds. Not every hierarchy has the first.
_DOORS: Final = ("tasks", "cgroup.procs")
_MOUNTS: Final = Path("/proc/self/mounts")
_OURS: Final = Path("/proc/self/cgroup")


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """An empty control group: the controllers that limit it, and descriptors to join it."""

    limited: frozenset[str]
    doors: tuple[int, ...]
    directories: tuple[Path, ...]
    locks: tuple[int, ...]

    def close(self) -> None:
        """Remove the group if it is empty; otherwise the next start removes it."""
        for descriptor in (*self.doors, *self.locks):
            os.close(descriptor)
        for directory in self.directories:
            with suppress(OSError):
                directory.rmdir()


def make_group(limits: ResourceLimits) -> ControlGroup:
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
    return ControlGroup(frozenset(limited), tuple(doors), tuple(directories), tuple(locks))


def _door(directory: Path) -> int:
    name = next(name for name in _DOORS if (directory / name).exists())
    return os.open(directory / name, os.O_WRONLY | os.O_CLOEXEC)


def clean_groups(parent: Path) -> None:
    """Remove empty groups in a directory whose lock is free: no process is about to join."""
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


@dataclass(frozen=True, slots=True)
class SandboxedEntry:
    """A process that is shut in as soon as it is entered; close it when the process has ended.

    `lacks` says in sentences what the sandbox does not do that it should, `unkept` those of them
    that are due to the files of the person, and `unseen` which directories of the PATH are not seen
    inside.
    """

    entry: ProcessEntry
    strength: Strength
    lacks: tuple[str, ...]
    unkept: tuple[str, ...]
    unseen: tuple[str, ...]
    _undo: ExitStack = field(repr=False)

    def close(self) -> None:
        """Give back what the sandbox needed; what others need too stays for them."""
        self._undo.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def prepare_sandbox(
    entry: ProcessEntry, policy: SandboxPolicy, *, state: Path, root: int | None = None
) -> SandboxedEntry:
    """The same process, shut in as the policy says, or SandboxUnavailable: never in the open.

    The entry says how it would start plainly. If it enters the namespaces of a place, `root` is a
    descriptor of the root directory in there, which is not needed any more afterwards. `state` is a
    directory of ours, one for each place, which must be remembered there.
    """
    means = preflight(entry.namespaces)
    if means.strength is None:
        raise SandboxUnavailable(reason="; ".join(means.reasons))
    if means.strength is Strength.REDUCED and policy.strength_least is Strength.FULL:
        raise SandboxUnavailable(reason=f"only a lesser one ({'; '.join(means.reasons)})")
    search = search_path(entry.env.get("PATH", os.defpath), seen=policy.readable + policy.writable)
    policy = _settled(policy, search.readable, state=state, root=root)
    variables = allowed_environment(entry.env, policy.environment) | {"PATH": search.value}
    entry = replace(entry, cwd=resolved(entry.cwd, root=root))
    with ExitStack() as undo:
        placeholders = Placeholders(state, watch=watch)
        wanted = wanted_names(policy, state=state, root=root)
        alive, kept = placeholders.hold(wanted.names, root=root, files=wanted.files)
        undo.callback(placeholders.release, alive)
        group = make_group(policy.limits)
        undo.callback(group.close)
        entry = replace(entry, groups=(*entry.groups, *group.doors))
        if means.bubblewrap is not None:
            is_counted = "pids" in group.limited
            wrapping = Wrapping(means.bubblewrap, variables, kept, alive, is_counted, root)
            entry = wrapped(entry, policy, wrapping, undo)
        else:
            entry, undoing = fenced(entry, policy, variables, kept, state)
            undo.push(undoing)
        lacks = (*_lacks(means.strength, group), *wanted.unkept)
        told = lacks, wanted.unkept, search.unseen
        return SandboxedEntry(entry, means.strength, *told, undo.pop_all())


def _settled(
    policy: SandboxPolicy, packages: tuple[str, ...], *, state: Path, root: int | None
) -> SandboxPolicy:
    """The policy in paths without links, with what we keep ourselves out of sight."""
    settled = replace(
        policy,
        readable=_all_resolved((*policy.readable, *packages), root),
        writable=_all_resolved(policy.writable, root),
        unguarded=_all_resolved(policy.unguarded, root),
        hidden=(*_all_resolved(policy.hidden, root), *_own(os.path.realpath(state), root)),
    )
    for path in settled.writable:
        if path_info(path, root=root).sort is not PathType.DIRECTORY:
            raise SandboxRequestUnfit(reason=f"{path} is not a directory that could be written")
        if is_within(path, (os.path.realpath(state),)):
            raise SandboxRequestUnfit(reason=f"{path} is where sandboxes are kept track of")
    for path in settled.readable:
        if path_info(path, root=root).sort is PathType.ABSENT:
            raise SandboxRequestUnfit(reason=f"{path} does not exist")
    return checked(settled)


def _own(state: str, root: int | None) -> tuple[str, ...]:
    """Where we keep track of sandboxes; in a place it may be out of everyone's reach already."""
    try:
        path_info(state, root=root)
    except PermissionError:
        return ()
    return (state,)


def _all_resolved(paths: tuple[str, ...], root: int | None) -> tuple[str, ...]:
    checked(SandboxPolicy(readable=paths))
    return tuple(dict.fromkeys(resolved(path, root=root) for path in paths))


def _lacks(strength: Strength, group: ControlGroup) -> tuple[str, ...]:
    found: list[str] = [*LACKS] if strength is Strength.REDUCED else []
    if "pids" not in group.limited and (strength is Strength.REDUCED or os.geteuid() == 0):
        found.append("its processes are not counted")
    if "memory" not in group.limited:
        found.append("its memory is limited for each process, not for all together")
    return tuple(found)
