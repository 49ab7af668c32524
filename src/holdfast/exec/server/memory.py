"""Keep the memory that output passes through, instead of giving it back after each piece."""

from __future__ import annotations

import ctypes
from contextlib import suppress

# Pieces of output are larger than what the C library keeps by itself: it would return their memory
# to the kernel and ask for it again, a page fault for every 4 KiB of output.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as <malloc.h> numbers them
_KEPT_BYTES, _PIECE_BYTES_MAX = 16 * 2**20, 4 * 2**20


def keep_freed_memory() -> None:
    """Let the allocator of this process keep up to 16 MiB for the next piece, where it can."""
    with suppress(AttributeError):  # this C library has no such choice
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_MMAP_THRESHOLD, _PIECE_BYTES_MAX)
