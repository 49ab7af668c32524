"""Have the kernel move output: from a pipe into a file, and from a terminal into a pipe."""

from __future__ import annotations

import errno
import fcntl
import os
import sys
from contextlib import suppress
from typing import NamedTuple

MOVE_BYTES_MAX = 2**20

_HERE_AND_NOW = getattr(os, "SPLICE_F_NONBLOCK", 0)


class Place(NamedTuple):
    """Where the next output goes: into a file, there or where it stands, and no more than this."""

    file: int
    offset: int | None
    room: int = MOVE_BYTES_MAX


def move(source: int, place: Place) -> int | None:
    """Move what a pipe holds to this place; None if nothing can be moved now, 0 at its end."""
    if not place.room:
        return None
    try:
        return os.splice(
            source, place.file, place.room, offset_dst=place.offset, flags=_HERE_AND_NOW
        )
    except BlockingIOError:
        return None


def move_terminal(master: int, pipe: int) -> int | None:
    """Move what a terminal shows into a pipe; None if there is nothing new, 0 at its end."""
    try:
        return os.splice(master, pipe, MOVE_BYTES_MAX, flags=_HERE_AND_NOW)
    except BlockingIOError:
        return None
    except OSError as error:
        if error.errno != errno.EIO:  # nobody has the other side of the terminal open
            raise
        return 0


def widen(pipe: int) -> None:
    """Let a pipe hold what one move takes; a user who has used up their share keeps the default."""
    if sys.platform == "linux":
        with suppress(PermissionError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, MOVE_BYTES_MAX)
