"""Say that the disk is full, also if only the words of an agent find no room on it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import anyio

from holdfast.host.serving import Reception
from holdfast.world.failures import DiskFull

_LOOK_AGAIN: Final = 2.0
_ROOM_BYTES: Final = 64 * 1024  # less is none: a file takes whole blocks, and more for its name


async def watch_room(directory: Path, reception: Reception) -> None:
    """Tell everyone as long as there is no room, until cancelled.

    What an agent says waits in its pipe while the plane has no room to keep it: then nothing
    comes, the session has nothing to write, and nobody else would say why.
    """
    is_told = False
    while True:
        await anyio.sleep(_LOOK_AGAIN)
        is_full = not has_room(directory)
        if is_full and reception.trouble is None:
            reception.complain(DiskFull(path=str(directory)))
            is_told = True
        elif is_told and not is_full:
            reception.complain(None)
            is_told = False


def has_room(directory: Path) -> bool:
    """Whether anything more can be kept there: asked first, and tried where the answer is no.

    What is set aside for root, or by the file system for itself, counts as free for some.
    """
    try:
        there = os.statvfs(directory)
    except OSError:  # whatever is wrong there is said by who needs it
        return True
    return there.f_bavail * there.f_frsize >= _ROOM_BYTES or _finds_room(directory)


def _finds_room(directory: Path) -> bool:
    if sys.platform != "linux":  # elsewhere a file without a name cannot be made
        return False
    file = -1
    try:
        file = os.open(directory, os.O_TMPFILE | os.O_WRONLY)
        return os.write(file, bytes(_ROOM_BYTES)) == _ROOM_BYTES
    except OSError:
        return False
    finally:
        if file >= 0:
            os.close(file)
