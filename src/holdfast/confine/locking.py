"""The lock of a draft: who has it may make its place, and the holder keeps it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager

LOCK_NAME = "lock"


@contextmanager
def locked(directory: str, *, is_new: bool = False) -> Generator[int | None]:
    """A descriptor with the lock; None while somebody else has it, or if a draft has none yet.

    Whoever inherits the descriptor has the lock too, until both have closed it.
    """
    try:
        lock = _locked(os.path.join(directory, LOCK_NAME), os.O_CREAT if is_new else 0)
    except FileNotFoundError:
        lock = None
    try:
        yield lock
    finally:
        if lock is not None:
            os.close(lock)


def _locked(path: str, makes: int) -> int | None:
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CLOEXEC | makes, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Who failed to make a place may have removed the file while we waited to open it.
            if os.path.exists(path) and os.path.samestat(os.fstat(lock), os.stat(path)):
                return lock
            os.close(lock)
        except BlockingIOError:
            os.close(lock)
            return None
