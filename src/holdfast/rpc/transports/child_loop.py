"""Follow a child process: what it says, what it complains about, and how it ends."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from subprocess import Popen

from holdfast.rpc.framing import TailBuffer, child_failure
from holdfast.rpc.transports.launch import Pipes
from holdfast.rpc.transports.stream_loop import READ_BYTES, LineStream

_STDERR_READ_BYTES = 64 * 2**10
_STATUS_UNKNOWN = 255  # as asyncio says it, too


class ChildProcess:
    """One process from its start until it is released; its messages are in `stream`."""

    def __init__(self, process: Popen[bytes], pipes: Pipes, *, message_bytes_max: int) -> None:
        self._exit = ExitWatch(process, self._exited)  # first: only this can fail
        self._stderr = StderrTail(pipes.stderr)
        self.exited = asyncio.Event()
        self.stream = LineStream(
            read_fd=pipes.stdout,
            write_fd=pipes.stdin,
            message_bytes_max=message_bytes_max,
            judge=child_failure,
            stderr=self.stderr,
        )

    def stderr(self) -> str:
        """The last that the process and its descendants wrote to their standard error."""
        self._stderr.catch_up()
        return self._stderr.tail.text()

    def release(self) -> None:
        """Let go of everything: the descriptors, the timer, and the process if it has ended."""
        self.stream.close()
        self._stderr.close()
        self._exit.release()

    def _exited(self, status: int) -> None:
        self.exited.set()
        self.stream.exited(status)


class StderrTail:
    """Reads all that a child complains about, so that it never blocks, and keeps the end."""

    def __init__(self, fd: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd = fd
        self.tail = TailBuffer()
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._read)

    def catch_up(self) -> None:
        """Read what is there now, but no more than a pipe holds: someone may never stop."""
        for _ in range(READ_BYTES // _STDERR_READ_BYTES):
            if not self._read():
                return

    def close(self) -> None:
        """Release the descriptor; may be called again."""
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
        self._fd = -1

    def _read(self) -> bool:
        """Take what one read yields; say whether there may be more."""
        if self._fd < 0:
            return False
        try:
            data = os.read(self._fd, _STDERR_READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return False
        self.tail.feed(data)
        if not data:
            self.close()
        return bool(data)


if sys.platform == "linux":

    class ExitWatch:
        """Tells once when and how a process ended.

        The process is reaped only on release: until then its number is given to nobody else, and
        the tree below it can be signalled safely.
        """

        def __init__(self, process: Popen[bytes], exited: Callable[[int], None]) -> None:
            self._loop = asyncio.get_running_loop()
            self._process, self._exited = process, exited
            self._has_ended = False
            self._pidfd = os.pidfd_open(process.pid)
            self._loop.add_reader(self._pidfd, self._look)

        def release(self) -> None:
            """Stop watching, and reap the process if it has ended; may be called again."""
            self._stop()
            if self._has_ended:
                self._process.wait()

        def _look(self) -> None:
            status = self._status()
            if status is not None:
                self._stop()
                self._has_ended = True
                self._exited(status)

        def _status(self) -> int | None:
            try:
                end = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:  # a program that ignores SIGCHLD is told of no status
                return _STATUS_UNKNOWN
            if end is None:
                return None
            return end.si_status if end.si_code == os.CLD_EXITED else -end.si_status

        def _stop(self) -> None:
            if self._pidfd >= 0:
                self._loop.remove_reader(self._pidfd)
                os.close(self._pidfd)
            self._pidfd = -1

else:

    class ExitWatch:
        """Tells once when and how a process ended; without pidfds, by looking now and then."""

        _LOOK_AGAIN = 0.05

        def __init__(self, process: Popen[bytes], exited: Callable[[int], None]) -> None:
            self._loop = asyncio.get_running_loop()
            self._process, self._exited = process, exited
            self._timer = self._loop.call_later(self._LOOK_AGAIN, self._look)

        def release(self) -> None:
            """Stop watching; may be called again."""
            self._timer.cancel()

        def _look(self) -> None:
            status = self._process.poll()
            if status is None:
                self._timer = self._loop.call_later(self._LOOK_AGAIN, self._look)
            else:
                self._exited(status)
