"""Give the disk back what stands in a part of a file, whose length stays."""

from __future__ import annotations

import ctypes
from contextlib import suppress

_KEEP_SIZE_AND_PUNCH = 3  # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE
_LIBC = ctypes.CDLL(None)


def punch(file: int, start: int, end: int) -> None:
    """Punch a hole there; where that cannot be done, it is only not read."""
    if end > start:
        with suppress(AttributeError):  # there is no such call on this system
            _LIBC.fallocate(
                file, _KEEP_SIZE_AND_PUNCH, ctypes.c_int64(start), ctypes.c_int64(end - start)
            )
