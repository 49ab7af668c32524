"""Shut a process in: from what it may touch to the way in which it is started."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from holdfast.confine.core.ground import search_path
from holdfast.confine.core.policy import (
    Policy,
    Strength,
    allowed_environment,
    checked,
    is_within,
)
from holdfast.confine.core.protected import Sort
from holdfast.confine.entry import Entry
from holdfast.confine.failures import SandboxRequestUnfit, SandboxUnavailable
from holdfast.confine.fencing import LACKS, fenced
from holdfast.confine.groups import Group, make_group
from holdfast.confine.looking import look, resolved
from holdfast.confine.nested import wanted_names
from holdfast.confine.placeholders import Placeholders
from holdfast.confine.preflight import preflight
from holdfast.confine.sweeper import watch
from holdfast.confine.wrapping import Wrapping, wrapped


@dataclass(frozen=True, slots=True)
class Shut:
    """A process that is shut in as soon as it is entered; close it when the process has ended.

    `lacks` says in sentences what the sandbox does not do that it should, `unkept` those of them
    that are due to the files of the person, and `unseen` which directories of the PATH are not seen
    inside.
    """

    entry: Entry
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


def shut_in(entry: Entry, policy: Policy, *, state: Path, root: int | None = None) -> Shut:
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
        return Shut(entry, means.strength, *told, undo.pop_all())


def _settled(policy: Policy, packages: tuple[str, ...], *, state: Path, root: int | None) -> Policy:
    """The policy in paths without links, with what we keep ourselves out of sight."""
    settled = replace(
        policy,
        readable=_all_resolved((*policy.readable, *packages), root),
        writable=_all_resolved(policy.writable, root),
        unguarded=_all_resolved(policy.unguarded, root),
        hidden=(*_all_resolved(policy.hidden, root), *_own(os.path.realpath(state), root)),
    )
    for path in settled.writable:
        if look(path, root=root).sort is not Sort.DIRECTORY:
            raise SandboxRequestUnfit(reason=f"{path} is not a directory that could be written")
        if is_within(path, (os.path.realpath(state),)):
            raise SandboxRequestUnfit(reason=f"{path} is where sandboxes are kept track of")
    for path in settled.readable:
        if look(path, root=root).sort is Sort.ABSENT:
            raise SandboxRequestUnfit(reason=f"{path} does not exist")
    return checked(settled)


def _own(state: str, root: int | None) -> tuple[str, ...]:
    """Where we keep track of sandboxes; in a place it may be out of everyone's reach already."""
    try:
        look(state, root=root)
    except PermissionError:
        return ()
    return (state,)


def _all_resolved(paths: tuple[str, ...], root: int | None) -> tuple[str, ...]:
    checked(Policy(readable=paths))
    return tuple(dict.fromkeys(resolved(path, root=root) for path in paths))


def _lacks(strength: Strength, group: Group) -> tuple[str, ...]:
    found: list[str] = [*LACKS] if strength is Strength.REDUCED else []
    if "pids" not in group.limited and (strength is Strength.REDUCED or os.geteuid() == 0):
        found.append("its processes are not counted")
    if "memory" not in group.limited:
        found.append("its memory is limited for each process, not for all together")
    return tuple(found)
