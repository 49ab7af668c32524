"""Remove a directory tree of any depth.

Each subdirectory is first moved up beside its parent: no path becomes long, and no more than two
directories are open. Directories without permissions are made accessible.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from holdfast.world import disk_failure

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Other processes may still create files.
_TRIES_MAX = 100


def remove_whole(directory: Path) -> None:
    """Remove a directory tree; idempotent, links are not followed.

    Raises a failure of the disk if an entry cannot be removed.
    """
    try:
        parent = os.open(directory.parent, _OPEN)
    except FileNotFoundError:
        return
    except OSError as error:
        raise disk_failure(error, path=str(directory)) from error
    try:
        remove_beneath(parent, os.fsencode(directory.name))
    except OSError as error:
        raise disk_failure(error, path=str(directory)) from error
    finally:
        os.close(parent)


def remove_beneath(parent: int, name: bytes) -> None:
    """Remove an entry of an open directory with all below it; raises OSError."""
    try:
        top = _opened(parent, name)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        os.unlink(name, dir_fd=parent)
        return
    try:
        # Processes may still write to the tree, so removal is repeated until it is empty.
        for _ in range(_TRIES_MAX):
            _empty(top)
            with suppress(FileNotFoundError):
                try:
                    os.rmdir(name, dir_fd=parent)
                except OSError as error:
                    if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                        raise
                    continue
            return
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))
    finally:
        os.close(top)


def _empty(top: int) -> None:
    """Remove the contents of a directory."""
    count = 0
    ahead = _emptied(top)
    while ahead:
        name = ahead.pop()
        try:
            here = _opened(top, name)
        except (FileNotFoundError, NotADirectoryError):
            # Removed or replaced meanwhile; the next round handles it.
            continue
        try:
            for below in _emptied(here):
                count, moved = _moved_up(here, below, top, count)
                ahead.append(moved)
        finally:
            os.close(here)
        with suppress(OSError):
            # Not empty again: the next round handles it.
            os.rmdir(name, dir_fd=top)


def _emptied(directory: int) -> list[bytes]:
    """Remove all entries but directories; return the names of those."""
    below: list[bytes] = []
    with os.scandir(directory) as entries:
        found = [(each.name, each.is_dir(follow_symlinks=False)) for each in entries]
    for name, is_directory in found:
        if is_directory:
            below.append(os.fsencode(name))
            continue
        try:
            os.unlink(name, dir_fd=directory)
        except FileNotFoundError:
            pass
        except IsADirectoryError:
            below.append(os.fsencode(name))
    return below


def _moved_up(here: int, name: bytes, top: int, count: int) -> tuple[int, bytes]:
    """Move a directory up to an unused name."""
    with suppress(FileNotFoundError, NotADirectoryError):
        # A directory must be writable to be moved.
        os.close(_opened(here, name))
    while True:
        count += 1
        moved = b"%d" % count
        try:
            os.mkdir(moved, 0o700, dir_fd=top)
        except FileExistsError:
            continue
        with suppress(FileNotFoundError, NotADirectoryError):
            os.rename(name, moved, src_dir_fd=here, dst_dir_fd=top)
        return count, moved


def _opened(parent: int, name: bytes) -> int:
    """Open a directory, granting ourselves access if necessary."""
    try:
        found = os.open(name, _OPEN, dir_fd=parent)
    except PermissionError:
        _unlock(parent, name)
        return os.open(name, _OPEN, dir_fd=parent)
    mode = os.fstat(found).st_mode
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        with suppress(PermissionError):
            os.fchmod(found, stat.S_IMODE(mode) | stat.S_IRWXU)
    return found


def _unlock(parent: int, name: bytes) -> None:
    flags = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
    found = os.open(name, flags, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{found}", 0o700)
    finally:
        os.close(found)
