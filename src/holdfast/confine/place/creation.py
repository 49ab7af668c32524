"""Make the place of a draft: whole and held, or not at all."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from holdfast.confine.failures import ForeignOwners, PlaceHeld, PlaceUnavailable
from holdfast.confine.model import Holder, PlaceSpec, PlaceStep
from holdfast.confine.place.holder import PlaceStepRefused, layers, prepared
from holdfast.confine.place.id_mapping import is_mapped, known_in, narrow, wide
from holdfast.confine.place.place import (
    LOCK_NAME,
    Place,
    forget,
    locked,
    mark_of,
    record,
    recorded_holder,
)
from holdfast.confine.place.spawn import prepared_apart
from holdfast.world import disk_failure

# Say in words why the kernel makes no place, such that someone can do something.

_NOBODY = {
    0: "the process that was to hold it was killed",
    errno.ETIMEDOUT: "the kernel did not answer in time",
}
_DENIED = (errno.EPERM, errno.EACCES)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """What is known of the machine: its switches, None where it has no such switch.

    `filesystem` is the one of the draft; `mounted_below` is something mounted inside the project.
    """

    namespaces_max: int | None = None
    is_clone_unprivileged: bool | None = None
    is_restricted_by_apparmor: bool | None = None
    filesystem: str = "unknown"
    mounted_below: str | None = None


def reason(step: PlaceStep, number: int, machine: MachineFacts) -> str:
    """Why a step failed with this number of the system; 0 if who was to do it just ended."""
    if number in _NOBODY:
        return _NOBODY[number]
    if step in (PlaceStep.NAMESPACES, PlaceStep.MAPS):
        return _without_namespaces(number, machine)
    if machine.is_restricted_by_apparmor and number in _DENIED:
        return _APPARMOR
    if step is PlaceStep.OVERLAY:
        return _without_overlay(number, machine)
    if step is PlaceStep.PROC and number == errno.EPERM:
        return "this is a container, and parts of its /proc are covered"
    return f"{_WORDS[step]}: {errno.errorcode.get(number, str(number))}"


_APPARMOR = "AppArmor keeps user namespaces from programs that it has no profile for"
_WORDS = {
    PlaceStep.HIDING: "the draft's own files cannot be hidden",
    PlaceStep.PROC: "there can be no /proc of its own",
    PlaceStep.PROGRAM: "`sleep` cannot be run",
}


def _without_namespaces(number: int, machine: MachineFacts) -> str:
    if machine.namespaces_max == 0:
        return "user namespaces are switched off: user.max_user_namespaces is 0"
    if machine.is_clone_unprivileged is False:
        return "user namespaces are for root alone: kernel.unprivileged_userns_clone is 0"
    if number in (errno.ENOSPC, errno.EUSERS):
        return "there are as many user namespaces as there may be"
    if number == errno.EINVAL:
        return "this kernel has no user namespaces"
    if machine.is_restricted_by_apparmor:
        return _APPARMOR
    return "user namespaces are forbidden here, by a container or a filter of system calls"


def _without_overlay(number: int, machine: MachineFacts) -> str:
    if machine.mounted_below is not None:
        return f"something else is mounted inside it, at {machine.mounted_below}"
    if number == errno.ENODEV:
        return "this kernel has no overlay file system"
    if number in (*_DENIED, errno.EINVAL, errno.EOPNOTSUPP):
        return f"an overlay cannot be kept on {machine.filesystem}, where the draft is"
    return f"no overlay can be laid over it: {errno.errorcode.get(number, str(number))}"


# Look at what of this machine may keep a place from being made.

_ESCAPED = re.compile(rb"\\([0-7]{3})")


def machine_for(spec: PlaceSpec) -> MachineFacts:
    """What is known of the machine, for one who wants such a place."""
    mounts = list(_mounts())
    around = [(len(point), kind) for point, kind in mounts if _is_within(spec.directory, point)]
    below = [point for point, _ in mounts for path in spec.covered if _is_within(point, path + "/")]
    clone = _switch("kernel/unprivileged_userns_clone")
    apparmor = _switch("kernel/apparmor_restrict_unprivileged_userns")
    return MachineFacts(
        namespaces_max=_switch("user/max_user_namespaces"),
        is_clone_unprivileged=None if clone is None else clone > 0,
        is_restricted_by_apparmor=None if apparmor is None else apparmor > 0,
        filesystem=max(around, default=(0, "unknown"))[1],
        mounted_below=below[0] if below else None,
    )


def _switch(name: str) -> int | None:
    try:
        return int(Path("/proc/sys", name).read_text("ascii"))
    except (OSError, ValueError):
        return None


def _mounts() -> Iterator[tuple[str, str]]:
    """Where something is mounted, and of which kind it is, in the order of mounting."""
    for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
        where, _, what = line.partition(b" - ")
        point = _ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), where.split(b" ")[4])
        yield os.fsdecode(point), os.fsdecode(what.split(b" ")[0])


def _is_within(path: str, directory: str) -> bool:
    return (path + "/").startswith(directory.rstrip("/") + "/")


# Files whose owner has no mapping in the user namespace cannot be changed through the overlay.

_LEFT_OUT: Final = {errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENAMETOOLONG}


def refuse_foreign_owners(
    directory: str | os.PathLike[str], *, looks_most: int | None = None
) -> None:
    """Raise ForeignOwners, with one example, if not all below a directory can be changed inside.

    A group that is not our first one counts too: overlayfs does not copy up a file with an
    unmapped group. On request no more than some files are looked at, the nearest first.
    """
    if sys.platform != "linux":
        return
    foreign = foreign_owner(directory, looks_most=looks_most)
    if foreign is not None:
        raise ForeignOwners(directory=os.fspath(directory), example=foreign)


def foreign_owner(
    directory: str | os.PathLike[str], *, looks_most: int | None = None
) -> str | None:
    """The first file whose user or group is not mapped in the place; None if there is none."""
    own = {"uid": os.geteuid(), "gid": os.getegid()}
    maps = {kind: narrow(number) for kind, number in own.items()}
    if os.geteuid() == 0:
        for kind, number in own.items():
            maps[kind] = wide(number, known_in(Path(f"/proc/self/{kind}_map").read_text("ascii")))
    for path, found in islice(_statuses(os.fspath(directory)), looks_most):
        if not (is_mapped(found.st_uid, maps["uid"]) and is_mapped(found.st_gid, maps["gid"])):
            return path
    return None


def _statuses(directory: str) -> Iterator[tuple[str, os.stat_result]]:
    """All below a directory, itself first; what we may not look into, or not name, is left out."""
    yield directory, os.stat(directory)
    ahead = [directory]
    while ahead:
        try:
            with os.scandir(ahead.pop()) as entries:
                for entry in entries:
                    yield entry.path, entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        ahead.append(entry.path)
        except OSError as error:
            if error.errno not in _LEFT_OUT:
                raise


_LOOKS_MOST = 256  # a fraction of a millisecond


def create(spec: PlaceSpec) -> Place:
    """A new place of a draft, held by a process of its own; the caller closes its descriptors.

    Raises PlaceHeld if it has a holder already, PlaceUnavailable with the reason if there can be
    none, ForeignOwners if files that could not be changed lie on top; then everything is as it
    was. Whether such files lie deeper, `refuse_foreign_owners` says, which takes time for each.
    """
    if sys.platform != "linux":
        raise PlaceUnavailable(directory=spec.project, reason="only Linux has such views")
    spec = _settled(spec)
    if os.geteuid() != 0:  # root knows everyone
        for path in spec.covered:
            refuse_foreign_owners(path, looks_most=_LOOKS_MOST)
    try:
        with ExitStack() as undone:
            _make_directory(spec.directory, undone)
            is_new = not os.path.exists(os.path.join(spec.directory, LOCK_NAME))
            with locked(spec.directory, is_new=is_new) as lock:
                if lock is None or recorded_holder(spec.directory) is not None:
                    raise PlaceHeld(directory=spec.directory)
                holder = _held(spec, lock, is_new=is_new)
            undone.pop_all()
    except PlaceStepRefused as refused:
        why = reason(refused.step, refused.number, machine_for(spec))
        raise PlaceUnavailable(directory=spec.project, reason=why) from refused
    except OSError as error:
        raise disk_failure(error, path=spec.directory) from error
    return Place.held_by(holder)


def _settled(spec: PlaceSpec) -> PlaceSpec:
    """The same without links, if it makes sense."""
    covered = [os.path.realpath(path) for path in spec.covered]
    directory = os.path.realpath(spec.directory)
    hidden = [os.path.realpath(path) for path in spec.hidden if os.path.isdir(path)]
    for path in covered:
        if not os.path.isdir(path):
            raise PlaceUnavailable(directory=path, reason="it is not a directory")
        if any(_is_below(path, each) for each in (directory, *hidden)):
            raise PlaceUnavailable(directory=path, reason="it lies in what is to be hidden")
        if _is_below(directory, path):
            raise PlaceUnavailable(directory=path, reason="the draft lies inside of it")
    project, *also = covered
    return PlaceSpec(directory=directory, project=project, also=tuple(also), hidden=tuple(hidden))


def _is_below(path: str, directory: str) -> bool:
    return os.path.commonpath((path, directory)) == directory


def _held(spec: PlaceSpec, lock: int, *, is_new: bool) -> Holder:
    """The holder of a place that is whole; if there is none, all that was made is gone again."""
    mark = mark_of(spec, time.time())
    with ExitStack() as undone:
        if is_new:  # we hold the lock, so no other process can take it before it is removed
            undone.callback(os.unlink, os.path.join(spec.directory, LOCK_NAME))
        for number, path in enumerate(spec.covered):
            _make_layers(path, layers(spec.directory, number), undone)
        undone.callback(forget, spec.directory)
        # What is forked runs code of ours, which is safe only where there is one thread.
        is_alone = len(os.listdir("/proc/self/task")) == 1
        prepare = prepared if is_alone else prepared_apart
        with prepare(spec, lock, mark) as holding:
            holder = record(mark, holding.pid)
            if holder is None:
                raise PlaceStepRefused(PlaceStep.PROGRAM, 0)
            holding.confirm()
        undone.pop_all()
    return holder


def _make_layers(covered: str, names: tuple[str, str], undone: ExitStack) -> None:
    """Give the draft a layer that looks like the directory it will cover, and room to work in."""
    upper, work = names
    if _make_directory(upper, undone):
        status = os.stat(covered)
        with suppress(PermissionError):  # of another owner: the caller was informed before
            os.chown(upper, status.st_uid, status.st_gid)
        os.chmod(upper, stat.S_IMODE(status.st_mode))
    if _make_directory(work, undone):
        undone.callback(_remove_directory, os.path.join(work, "work"))  # the kernel's


def _make_directory(path: str, undone: ExitStack) -> bool:
    """Make a directory that is removed again if all fails; say whether it was not there."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return False
    undone.callback(_remove_directory, path)
    return True


def _remove_directory(path: str) -> None:
    with suppress(OSError):  # never made, or no longer empty
        os.rmdir(path)
