"""Move output with `splice(2)`: from a pipe into a file, from a terminal into a pipe.

Decision: docs/decisions/0044-output-retention-by-splice.md
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import sys
from contextlib import suppress
from typing import NamedTuple

from holdfast.exec.keeper.client_loop import KeptProcess

MOVE_BYTES_MAX = 2**20

_HERE_AND_NOW = getattr(os, "SPLICE_F_NONBLOCK", 0)


class SpliceTarget(NamedTuple):
    """Where `splice` writes: descriptor, offset (None: its file position), and bytes at most."""

    file: int
    offset: int | None
    room: int = MOVE_BYTES_MAX


def move(source: int, place: SpliceTarget) -> int | None:
    """Move the content of a pipe; returns bytes, None if nothing can be moved now, 0 at EOF."""
    if not place.room:
        return None
    try:
        return os.splice(
            source, place.file, place.room, offset_dst=place.offset, flags=_HERE_AND_NOW
        )
    except BlockingIOError:
        return None


def move_terminal(master: int, pipe: int) -> int | None:
    """Move terminal output into a pipe; returns bytes, None if there is nothing new, 0 at EOF."""
    try:
        return os.splice(master, pipe, MOVE_BYTES_MAX, flags=_HERE_AND_NOW)
    except BlockingIOError:
        return None
    except OSError as error:
        # EIO: no process has the other side of the terminal open, which is EOF.
        if error.errno != errno.EIO:
            raise
        return 0


def enlarge_pipe(pipe: int) -> None:
    """Set the pipe buffer to the size of one move; past the user's pipe quota the default stays."""
    if sys.platform == "linux":
        with suppress(PermissionError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, MOVE_BYTES_MAX)


# Default size of a pipe buffer.
_FULL = 64 * 2**10


class SpliceSource:
    """One output stream of a process: a pipe that is spliced into a file."""

    has_stages = False

    def __init__(self, fd: int, stream: int) -> None:
        self.fd, self.stream = fd, stream
        self.is_ended = self._is_wide = False
        os.set_blocking(fd, False)

    def held(self) -> int | None:
        """Poll for data, with the results of `move`: 1 if there is any, None if not now, 0 at
        EOF.
        """
        look = select.poll()
        look.register(self.fd, select.POLLIN)
        ready = look.poll(0)
        if not ready:
            return None
        return 1 if ready[0][1] & select.POLLIN else 0

    def move(self, place: SpliceTarget) -> int | None:
        """Move what is there; returns bytes, None if there is nothing now, 0 at EOF."""
        moved = move(self.fd, place)
        if moved is not None and moved >= _FULL and not self._is_wide:
            self._is_wide = True
            enlarge_pipe(self.fd)
        return moved

    def close(self) -> None:
        self.is_ended = True
        os.close(self.fd)


class TerminalSource(SpliceSource):
    """A terminal, which can be spliced only into a pipe, and from there into a file.

    The keeper owns that pipe, so that its content survives a server; it is always emptied first.
    """

    has_stages = True

    def __init__(self, master: int, pipe_out: int, pipe_in: int) -> None:
        super().__init__(master, stream=0)
        self._pipe_out, self._pipe_in = pipe_out, pipe_in
        os.set_blocking(pipe_out, False)
        os.set_blocking(pipe_in, False)

    def held(self) -> int | None:
        """Return 1: data may be in the terminal or in the pipe."""
        return 1

    def move(self, place: SpliceTarget) -> int | None:
        """Move the content of the pipe; if it is empty, refill it from the terminal first."""
        moved = move(self._pipe_out, place)
        if moved is not None:
            return moved
        shown = move_terminal(self.fd, self._pipe_in)
        return move(self._pipe_out, place) if shown else shown

    def close(self) -> None:
        super().close()
        os.close(self._pipe_out)
        os.close(self._pipe_in)


def sources_of(kept: KeptProcess) -> list[SpliceSource]:
    """Take the output descriptors of a process; the terminal stays shared."""
    if kept.is_terminal:
        master, ends = kept.copy("pty"), (kept.take("pipe_out"), kept.take("pipe_in"))
        assert master is not None and ends[0] is not None and ends[1] is not None, "it is new"
        return [TerminalSource(master, ends[0], ends[1])]
    taken = [kept.take(stream) for stream in kept.streams]
    return [SpliceSource(fd, stream) for stream, fd in enumerate(taken) if fd is not None]
