"""Have the kernel move output: from a pipe into a file, and from a terminal into a pipe."""

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
    """Where the next output goes: into a file, there or where it stands, and no more than this."""

    file: int
    offset: int | None
    room: int = MOVE_BYTES_MAX


def move(source: int, place: SpliceTarget) -> int | None:
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


def enlarge_pipe(pipe: int) -> None:
    """Let a pipe hold what one move takes; a user who has used up their share keeps the default."""
    if sys.platform == "linux":
        with suppress(PermissionError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, MOVE_BYTES_MAX)


# The streams of one process, each of which the kernel moves into a file.

_FULL = 64 * 2**10  # what a pipe holds unless it was told otherwise


class SpliceSource:
    """One stream of a process: a pipe whose content goes into a file."""

    has_stages = False

    def __init__(self, fd: int, stream: int) -> None:
        self.fd, self.stream = fd, stream
        self.is_ended = self._is_wide = False
        os.set_blocking(fd, False)

    def held(self) -> int | None:
        """Whether anything is there, as `move` says it: None means not now, 0 never again."""
        look = select.poll()
        look.register(self.fd, select.POLLIN)
        ready = look.poll(0)
        if not ready:
            return None
        return 1 if ready[0][1] & select.POLLIN else 0

    def move(self, place: SpliceTarget) -> int | None:
        """Move what is there; None if there is nothing now, 0 if there never will be."""
        moved = move(self.fd, place)
        if moved is not None and moved >= _FULL and not self._is_wide:
            self._is_wide = True
            enlarge_pipe(self.fd)
        return moved

    def close(self) -> None:
        """Let go of it."""
        self.is_ended = True
        os.close(self.fd)


class TerminalSource(SpliceSource):
    """A terminal, whose output can only be moved into a pipe, and from there into a file.

    That pipe is the keeper's, so that what is in it survives us; it is always emptied first.
    """

    has_stages = True

    def __init__(self, master: int, pipe_out: int, pipe_in: int) -> None:
        super().__init__(master, stream=0)
        self._pipe_out, self._pipe_in = pipe_out, pipe_in
        os.set_blocking(pipe_out, False)
        os.set_blocking(pipe_in, False)

    def held(self) -> int | None:
        """Something, as far as one can know: it may be in the terminal or in the pipe."""
        return 1

    def move(self, place: SpliceTarget) -> int | None:
        """Move what is in the pipe; if that is empty, what the terminal has for it, too."""
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
    """The output of a process, from now on ours to take; the terminal itself stays shared."""
    if kept.is_terminal:
        master, ends = kept.copy("pty"), (kept.take("pipe_out"), kept.take("pipe_in"))
        assert master is not None and ends[0] is not None and ends[1] is not None, "it is new"
        return [TerminalSource(master, ends[0], ends[1])]
    taken = [kept.take(stream) for stream in kept.streams]
    return [SpliceSource(fd, stream) for stream, fd in enumerate(taken) if fd is not None]
