"""Whoever is about to let something into a draft says so, for as long as it has it open.

A draft in which nothing runs yet looks like one that nobody uses. So there is a lock that any
number of visitors share, and that the system takes back from one who dies.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from holdfast.world import disk_failure

_LOCK: Final = "visitors"
_OPEN: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def visiting(home: Path) -> Generator[None]:
    """Be known as a visitor of the draft that has this directory."""
    lock = _opened(home)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH)
        except OSError as error:
            raise disk_failure(error, path=str(home / _LOCK)) from error
        yield
    finally:
        os.close(lock)


def is_visited(home: Path) -> bool:
    """Whether a draft has visitors; whoever holds the workbench knows that none comes now."""
    lock = _opened(home)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False


def _opened(home: Path) -> int:
    try:
        return os.open(home / _LOCK, _OPEN, 0o600)
    except OSError as error:
        raise disk_failure(error, path=str(home / _LOCK)) from error
