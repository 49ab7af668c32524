"""Make the place of a draft: whole and held, or not at all."""

from __future__ import annotations

import os
import stat
import sys
import time
from contextlib import ExitStack, suppress

from holdfast.confine.apart import prepared_apart
from holdfast.confine.core.refusals import reason
from holdfast.confine.failures import PlaceHeld, PlaceUnavailable
from holdfast.confine.holding import Refused, layers, prepared
from holdfast.confine.locking import LOCK_NAME, locked
from holdfast.confine.machine import machine_for
from holdfast.confine.model import Holder, PlaceSpec, Step
from holdfast.confine.ownership import refuse_foreign_owners
from holdfast.confine.place import Place
from holdfast.confine.records import forget, mark_of, record, recorded_holder
from holdfast.world import disk_failure

_LOOKS_MOST = 256  # a fraction of a millisecond


def create(spec: PlaceSpec) -> Place:
    """A new place of a draft, held by a process of its own; the caller closes its descriptors.

    Raises PlaceHeld if somebody holds it already, PlaceUnavailable with the reason if there can be
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
    except Refused as refused:
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
        if any(_is_within(path, each) for each in (directory, *hidden)):
            raise PlaceUnavailable(directory=path, reason="it lies in what is to be hidden")
        if _is_within(directory, path):
            raise PlaceUnavailable(directory=path, reason="the draft lies inside of it")
    project, *also = covered
    return PlaceSpec(directory=directory, project=project, also=tuple(also), hidden=tuple(hidden))


def _is_within(path: str, directory: str) -> bool:
    return os.path.commonpath((path, directory)) == directory


def _held(spec: PlaceSpec, lock: int, *, is_new: bool) -> Holder:
    """The holder of a place that is whole; if there is none, all that was made is gone again."""
    mark = mark_of(spec, time.time())
    with ExitStack() as undone:
        if is_new:  # nobody can get a lock that is removed while we have it
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
                raise Refused(Step.PROGRAM, 0)
            holding.confirm()
        undone.pop_all()
    return holder


def _make_layers(covered: str, names: tuple[str, str], undone: ExitStack) -> None:
    """Give the draft a layer that looks like the directory it will cover, and room to work in."""
    upper, work = names
    if _make_directory(upper, undone):
        status = os.stat(covered)
        with suppress(PermissionError):  # of another owner: whoever asked for it was told
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
    with suppress(OSError):  # it was never made, or somebody has put something there
        os.rmdir(path)
