"""Keep memory that is needed again, and do in advance what nobody should wait for later."""

from __future__ import annotations

import ctypes
import fcntl
import gc
import os
import resource
from contextlib import suppress

# Pieces of output are larger than what the C library keeps by itself: it would return their memory
# to the kernel and ask for it again, a page fault for every 4 KiB of output.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as <malloc.h> numbers them
_KEPT_BYTES, _PIECE_BYTES_MAX = 16 * 2**20, 4 * 2**20
# Nearly all garbage goes by itself. To look through all that thousands of processes keep alive
# takes milliseconds, in which nobody is told anything.
_NEW_OBJECTS_MAX, _YOUNG_LOOKS, _OLD_LOOKS = 2000, 10, 1000
# When the table of descriptors of several threads grows, the kernel waits for all processors: ten
# milliseconds in the middle of opening a file.
_DESCRIPTORS = 16 * 2**10


def keep_freed_memory() -> None:
    """Let the allocator of this process keep up to 16 MiB for the next piece, where it can."""
    with suppress(AttributeError):  # this C library has no such choice
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_MMAP_THRESHOLD, _PIECE_BYTES_MAX)


def look_seldom() -> None:
    """Let the collector of garbage leave alone what is there now, and nearly all that is old."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS_MAX, _YOUNG_LOOKS, _OLD_LOOKS)


def widen_descriptors() -> int:
    """Make room for the descriptors of thousands of processes, as far as so many are allowed.

    Returns the limit that we had, which is meant for those that we start.
    """
    given, allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, allowed))
    most = min(allowed, _DESCRIPTORS)
    lowest = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    with suppress(OSError):  # then the table grows when it must
        os.close(fcntl.fcntl(lowest, fcntl.F_DUPFD_CLOEXEC, most - 1))
    os.close(lowest)
    return given
