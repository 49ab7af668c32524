"""Find files that a view could not change, because their owner is nobody inside."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from holdfast.confine.core.mapping import is_mapped, known_in, narrow, wide
from holdfast.confine.failures import ForeignOwners

_LEFT_OUT: Final = {errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENAMETOOLONG}


def refuse_foreign_owners(
    directory: str | os.PathLike[str], *, looks_most: int | None = None
) -> None:
    """Raise ForeignOwners, with one example, if not all below a directory can be changed inside.

    A group that is not our first one counts too: the kernel copies no file whose group is nobody.
    On request no more than some files are looked at, the nearest first.
    """
    if sys.platform != "linux":
        return
    foreign = foreign_owner(directory, looks_most=looks_most)
    if foreign is not None:
        raise ForeignOwners(directory=os.fspath(directory), example=foreign)


def foreign_owner(
    directory: str | os.PathLike[str], *, looks_most: int | None = None
) -> str | None:
    """The first file found whose user or group is nobody in a place of ours; it stops there."""
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
