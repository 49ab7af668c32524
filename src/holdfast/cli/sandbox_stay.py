"""Be at a command that is shut in until it ends, as if it ran plainly."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import anyio

from holdfast.cli.sandbox_streams import Streams
from holdfast.confine.proxy_loop import Proxy
from holdfast.failures import ungrouped

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGWINCH)
_LAST_WORDS: Final = 2.0  # seconds that what a killed command wrote may take to arrive


@contextmanager
def signals_waiting() -> Generator[None]:
    """Let signals wait until a stay hears them: the command may run before it does."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@dataclass(frozen=True, slots=True)
class Stay:
    """One stay at one process; `find` says which process is to hear our signals, if it lives."""

    pid: int
    streams: Streams
    find: Callable[[], int | None]
    proxy: Proxy | None = None
    listener: socket.socket | None = None

    async def run(self) -> int:
        """Stay until it has ended, and return its exit status."""
        with (
            ungrouped(),
            self.streams.raw(),
            anyio.open_signal_receiver(*_SIGNALS) as signals,
        ):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._heed, signals)
                tasks.start_soon(self.streams.feed)
                if self.proxy is not None and self.listener is not None:
                    tasks.start_soon(self.proxy.serve, self.listener)
                await self._ended()
                tasks.cancel_scope.cancel()
        return _status_of(self.pid)

    async def _ended(self) -> None:
        """Wait until it has ended and all that it wrote has been shown."""
        async with anyio.create_task_group() as showing:
            showing.start_soon(self.streams.show)
            await _end_of(self.pid)
            showing.cancel_scope.deadline = anyio.current_time() + _LAST_WORDS

    async def _heed(self, signals: AsyncIterator[signal.Signals]) -> None:
        """Hand every signal on: whether it ends the command is for the command to say."""
        async for number in signals:
            if number == signal.SIGWINCH:
                self.streams.resize()
            elif (command := self.find()) is not None:
                _send(command, number)


def _send(command: int, number: signal.Signals) -> None:
    """To its whole group, as a terminal does, if it has one of its own."""
    with suppress(ProcessLookupError, PermissionError):
        if os.getpgid(command) == command:
            os.killpg(command, number)
        else:
            os.kill(command, number)


async def _end_of(pid: int) -> None:
    life = os.pidfd_open(pid)
    try:
        await anyio.wait_readable(life)
    finally:
        os.close(life)


def _status_of(pid: int) -> int:
    """How a process that has ended has ended, as a shell says it."""
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status if status >= 0 else 128 - status
