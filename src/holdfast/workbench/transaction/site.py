"""Site of a transaction: root directory, stage, and the marker file.

The commit renames the marker to a second name. A rename needs one directory sync, where rewriting
the file would need two syncs; and the content of a marker is never overwritten.
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
    """Where a transaction runs: a root directory, its stage, and the marker outside of it.

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
        """Names of the marker before and after the commit."""
        return self.marker, committed_name(self.marker)


# Asked for five times in one operation.
@lru_cache(maxsize=64)
def committed_name(marker: Path) -> Path:
    return marker.with_suffix(f".{TransactionState.COMMITTED}{marker.suffix}")


def read_marker(site: TransactionSite) -> Marker | None:
    """Return the marker of an interrupted transaction.

    Raises MarkerDamaged or a failure of the disk.
    """
    first, second = site.markers
    # The prepared name wins: while it exists the rename of the commit has not happened.
    found = _read(site.disk, first)
    if found is not None:
        return found
    committed = _read(site.disk, second)
    return committed and replace(committed, state=TransactionState.COMMITTED)


def put_marker(site: TransactionSite, marker: Marker) -> None:
    """Write the marker durably and atomically."""
    replace_file(site.disk, site.marker, [encode_marker(marker)])


def commit_marker(site: TransactionSite) -> None:
    """Commit: rename the marker and sync its directory."""
    with suppress(DiskMissing):
        # Renamed before a crash, but maybe not synced.
        site.disk.rename(*site.markers)
    site.disk.sync_directory(site.marker.parent)


def remove_marker(site: TransactionSite, *, is_committed: bool) -> None:
    """Remove the marker of a finished transaction.

    Not synced: if it reappears after a power loss, recovery merely repeats the cleanup.
    """
    with suppress(DiskMissing):
        site.disk.unlink(site.markers[is_committed])


def set_aside(site: TransactionSite) -> None:
    """Rename an unreadable marker, so that it can be examined."""
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
    """Whether a path exists; lstat is cheaper than a failed open, and the marker rarely exists."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise disk_failure(error, path=str(path)) from error
    return True
