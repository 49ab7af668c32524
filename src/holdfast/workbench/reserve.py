"""Room that is kept back, so that on a full disk one can still write down what went wrong."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

RESERVE_BYTES = 16 * 2**20
_ROOM = 4  # so many times as much must be free before some is kept back
_CREATE = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class Reserve:
    """A file that takes up room until it is needed; never a reason for anything to fail."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def held_bytes(self) -> int:
        """How much is kept back."""
        try:
            return self._path.stat(follow_symlinks=False).st_size
        except OSError:
            return 0

    def renew(self) -> None:
        """Keep room back, if there is plenty and none is kept yet."""
        if self.held_bytes >= RESERVE_BYTES:
            return
        with suppress(OSError):
            there = os.statvfs(self._path.parent)
            if there.f_bavail * there.f_frsize < _ROOM * RESERVE_BYTES:
                return
            descriptor = os.open(self._path, _CREATE, 0o600)
            try:
                _allocate(descriptor)
            except OSError:
                os.ftruncate(descriptor, 0)
            finally:
                os.close(descriptor)

    def release(self) -> None:
        """Give the room back, for what must be written now."""
        with suppress(OSError):
            os.truncate(self._path, 0)


def _allocate(descriptor: int) -> None:
    """Take up the room for real; where that cannot be asked for, there is none to keep back."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
