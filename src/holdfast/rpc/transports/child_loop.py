"""Watch a child process: its stdout as messages, the tail of its stderr, its exit status."""

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
    """One child process from its start until it is released; `stream` carries its messages."""

    def __init__(self, process: Popen[bytes], pipes: Pipes, *, message_bytes_max: int) -> None:
        # First: only this can fail.
        self._exit = ExitWatch(process, self._exited)
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
        """Return the end of what the process and its descendants wrote to stderr."""
        self._stderr.catch_up()
        return self._stderr.tail.text()

    def release(self) -> None:
        """Close the descriptors and the timer, and reap the process if it has exited."""
        self.stream.close()
        self._stderr.close()
        self._exit.release()

    def _exited(self, status: int) -> None:
        self.exited.set()
        self.stream.exited(status)


class StderrTail:
    """Reads stderr of a child, so that the child never blocks on it, and keeps the tail."""

    def __init__(self, fd: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd = fd
        self.tail = TailBuffer()
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._read)

    def catch_up(self) -> None:
        """Read what is available, at most one pipe buffer: the writer may never stop."""
        for _ in range(READ_BYTES // _STDERR_READ_BYTES):
            if not self._read():
                return

    def close(self) -> None:
        """Close the descriptor; idempotent."""
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
        self._fd = -1

    def _read(self) -> bool:
        """Read once; returns whether more may be available."""
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
        """Calls back once with the exit status of a process.

        The process is reaped only on release: until then the kernel does not reuse its pid, and its
        process group can be signalled safely. Without pidfds the process is polled.
        """

        def __init__(self, process: Popen[bytes], exited: Callable[[int], None]) -> None:
            self._loop = asyncio.get_running_loop()
            self._process, self._exited = process, exited
            self._has_ended = False
            self._pidfd = os.pidfd_open(process.pid)
            self._loop.add_reader(self._pidfd, self._look)

        def release(self) -> None:
            """Stop watching, and reap the process if it has exited; idempotent."""
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
            # If the program ignores SIGCHLD the kernel reaps children itself and keeps no status.
            except ChildProcessError:
                # If the program ignores SIGCHLD the kernel reaps children itself and keeps no
                # status.
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
        """Calls back once with the exit status of a process.

        The process is reaped only on release: until then the kernel does not reuse its pid, and its
        process group can be signalled safely. Without pidfds the process is polled.
        """

        _LOOK_AGAIN = 0.05

        def __init__(self, process: Popen[bytes], exited: Callable[[int], None]) -> None:
            self._loop = asyncio.get_running_loop()
            self._process, self._exited = process, exited
            self._timer = self._loop.call_later(self._LOOK_AGAIN, self._look)

        def release(self) -> None:
            """Stop watching, and reap the process if it has exited; idempotent."""
            self._timer.cancel()

        def _look(self) -> None:
            status = self._process.poll()
            if status is None:
                self._timer = self._loop.call_later(self._LOOK_AGAIN, self._look)
            else:
                self._exited(status)
