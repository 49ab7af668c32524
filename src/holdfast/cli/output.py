"""Write to standard output, to the last byte or with a word about it."""

from __future__ import annotations

import errno
import os
import sys


def write(text: str) -> None:
    """Write and flush; an OSError says that some of it did not arrive."""
    stream = sys.stdout
    if stream is None:  # pyright: ignore[reportUnnecessaryComparison]  # it was closed before us
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    stream.write(text)
    stream.flush()


def abandon() -> None:
    """Give standard output up, so that the interpreter does not try once more when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
