"""Write to the two streams that everyone has, to the last byte or with a word about it."""

from __future__ import annotations

import errno
import os
import sys
from typing import TextIO


def write(text: str) -> None:
    """Write to standard output and flush; an OSError says that some of it did not arrive."""
    _write(text, sys.stdout)


def complain(text: str) -> None:
    """Write to standard error, if anyone is left to read it."""
    try:
        _write(text, sys.stderr)
    except OSError:
        abandon(2)


def _write(text: str, stream: TextIO | None) -> None:
    if stream is None:  # it was closed before we began
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    stream.write(text)
    stream.flush()


def abandon(descriptor: int) -> None:
    """Give a stream up, so that the interpreter does not try it once more when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
