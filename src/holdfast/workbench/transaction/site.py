"""Where a transaction takes place, and the marker that says how far it has come.

The marker gets a second name with the commit. That is one sync, where to write it anew would take
two; and what it says is never written over.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from holdfast.workbench.transaction.machine import Marker, TransactionState
from holdfast.workbench.transaction.marker import decode_marker, encode_marker
from holdfast.world import Disk, disk_failure, replace_file
from holdfast.world.failures import DiskMissing


def _nothing_to_give() -> None:
    pass


@dataclass(frozen=True, slots=True)
class TransactionSite:
    """Where a transaction takes place: a directory, its stage, and the marker outside of it.

    `release_reserve` frees reserved disk space; it is called on a full disk before a rollback.
    """

    root: int
    name: str
    stage: str
    marker: Path
    disk: Disk
    release_reserve: Callable[[], None] = _nothing_to_give

    @property
    def markers(self) -> tuple[Path, Path]:
        """Both names of the marker: the one that it is put under, and that of the commit."""
        return self.marker, committed_name(self.marker)


@lru_cache(maxsize=64)  # one deed asks for it five times
def committed_name(marker: Path) -> Path:
    """The name that a marker has once its transaction is committed."""
    return marker.with_suffix(f".{TransactionState.COMMITTED}{marker.suffix}")


def read_marker(site: TransactionSite) -> Marker | None:
    """What somebody began here; None if nothing. Raises MarkerDamaged, or a failure of the disk."""
    first, second = site.markers
    found = _read(site.disk, first)
    if found is not None:
        return found
    committed = _read(site.disk, second)
    return committed and replace(committed, state=TransactionState.COMMITTED)


def put_marker(site: TransactionSite, marker: Marker) -> None:
    """Say how far a transaction has come, durably and in one step."""
    replace_file(site.disk, site.marker, [encode_marker(marker)])


def commit_marker(site: TransactionSite) -> None:
    """Say that a transaction is committed, durably and in one step."""
    with suppress(DiskMissing):  # it has that name already, but nobody knows how durably
        site.disk.rename(*site.markers)
    site.disk.sync_directory(site.marker.parent)


def remove_marker(site: TransactionSite, *, is_committed: bool) -> None:
    """Say no more of a transaction that is over.

    That is not synced: if the power fails and it comes back, it says again that all is over.
    """
    with suppress(DiskMissing):
        site.disk.unlink(site.markers[is_committed])


def set_aside(site: TransactionSite) -> None:
    """Give a marker that nobody can read another name, under which it may be looked at."""
    word = site.disk.fresh_word()
    for marker in site.markers:
        with suppress(DiskMissing):
            site.disk.rename(marker, marker.with_name(f"{marker.name}.damaged-{word}"))
    site.disk.sync_directory(site.marker.parent)


def _read(disk: Disk, path: Path) -> Marker | None:
    if not is_there(path):
        return None
    try:
        file = disk.open(path)
    except DiskMissing:
        return None
    try:
        return decode_marker(file.read(file.status().size, at=0))
    finally:
        file.close()


def is_there(path: Path) -> bool:
    """Whether anything has a name, where hardly ever anything has; raise a failure of the disk.

    Not to open it is cheaper than not to succeed.
    """
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise disk_failure(error, path=str(path)) from error
    return True
