"""Be at a process as if it ran here: its output, its input, its signals and its window."""

from __future__ import annotations

import errno
import os
import signal
import sys
import termios
import tty
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager, suppress

import anyio
from anyio.abc import TaskGroup

from holdfast.cli.core.escape import Escape
from holdfast.cli.core.processes_page import output_line
from holdfast.cli.failures import OutputLost
from holdfast.cli.output import abandon, complain, is_terminal
from holdfast.cli.record_lines import json_line
from holdfast.cli.terminal import has_input, pour, read_input
from holdfast.exec import Client, Process
from holdfast.exec.model import Exited, Output, State
from holdfast.exec.wire import Stream
from holdfast.failures import Failure, ungrouped

_IN, _OUT, _ERR = 0, 1, 2
_OUTAGE_UNTOLD = 2.0  # seconds: most are over by then
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
_TELLING = (signal.SIGUSR1, signal.SIGUSR2)
_SIGNALS = (*_ENDING, *_TELLING, signal.SIGHUP, signal.SIGWINCH)


class Visit:
    """One stay at a process, until that ends or we leave; what is not ours to decide is raised."""

    def __init__(self, process: Process, client: Client, *, as_records: bool = False) -> None:
        """Be at a process; `as_records` writes both streams to ours as objects for a program."""
        self.status: int | None = None
        self.left_by: int | None = None  # the signal that made us leave it running
        self._process, self._client = process, client
        self._as_records = as_records
        self._is_warned = self._is_raw = False
        self._tasks: TaskGroup

    async def run(self) -> None:
        """Stay; the terminal is as it was afterwards, whatever happens."""
        with (
            ungrouped(),
            raw_keys(wanted=self._process.command.tty) as is_raw,
            anyio.open_signal_receiver(*_SIGNALS) as signals,
        ):
            self._is_raw = is_raw
            async with anyio.create_task_group() as self._tasks:
                self._tasks.start_soon(self._heed, signals)
                self._tasks.start_soon(self._resize)
                if is_terminal(sys.stderr):
                    self._tasks.start_soon(self._tell_of_outages)
                if self._process.command.has_stdin:
                    self._tasks.start_soon(self._feed, Escape() if is_raw else None)
                await self._show()
                self._tasks.cancel_scope.cancel()

    async def _show(self) -> None:
        """Write all that it writes, each stream where it belongs."""
        async for event in self._process.events():
            match event:
                case Output() if self._as_records:
                    await self._put(_OUT, json_line(output_line(event)).encode())
                case Output(stream=stream, data=data):
                    await self._put(_ERR if stream == Stream.STDERR else _OUT, data)
                case Exited(status=status):
                    self.status = status
                case _:
                    pass

    async def _put(self, descriptor: int, data: bytes) -> None:
        try:
            await pour(descriptor, data)
        except OSError as error:
            if descriptor == _ERR:
                abandon(_ERR)  # nobody is left to be told
                return
            abandon(_OUT)
            if error.errno == errno.EPIPE:  # as it would go for a child of the same shell
                with suppress(Failure):
                    await self._signal("PIPE")
            raise OutputLost(reason=error.strerror or str(error)) from error

    async def _feed(self, escape: Escape | None) -> None:
        """Hand on our input to its end; a process that takes none is no failure."""
        with suppress(Failure):
            while data := await read_input():
                if escape is not None:
                    data = escape.pass_on(data)
                if data:
                    await self._process.write(data)
                if escape is not None and escape.has_left:
                    self._leave(signal.SIGHUP)
                    return
            if self._process.can_close_stdin:
                await self._process.close_stdin()

    async def _heed(self, signals: AsyncIterator[signal.Signals]) -> None:
        """Hand signals on; a second one of those that end, or a hangup, leaves."""
        async for number in signals:
            if number == signal.SIGWINCH:
                self._tasks.start_soon(self._resize)
            elif number in _TELLING:
                if self._process.can_be_killed:  # else it could only be ended
                    self._tasks.start_soon(self._pass_signal, number.name.removeprefix("SIG"))
            elif self._is_warned or number == signal.SIGHUP:
                self._leave(number)
            else:
                self._is_warned = True
                name = "interrupt" if number == signal.SIGINT else number.name.removeprefix("SIG")
                self._tasks.start_soon(self._pass_signal, name)

    async def _pass_signal(self, name: str) -> None:
        with suppress(Failure):  # whatever it says, the next one leaves
            await self._signal(name)

    async def _signal(self, name: str) -> None:
        """Send a signal; a server that knows but interrupts kills instead."""
        if name == "interrupt" or self._process.can_be_killed:
            await self._process.signal(name)
        else:
            await self._process.terminate()

    async def _tell_of_outages(self) -> None:
        """Tell a person what they wait for, if they have waited for a while."""
        while True:
            await self._client.wait_state(State.RECOVERING)
            with anyio.move_on_after(_OUTAGE_UNTOLD):
                await self._client.wait_state(State.CONNECTED)
                continue
            self._note("The server does not answer; trying again. Ctrl-C twice leaves.")
            await self._client.wait_state(State.CONNECTED)
            self._note("The server answers again.")

    def _note(self, text: str) -> None:
        """Say something between the lines of the process, also while the terminal is raw."""
        complain(f"\r\n({text})\r\n" if self._is_raw else f"({text})\n")

    async def _resize(self) -> None:
        """Give its terminal the size of ours, if both are there."""
        if not self._process.command.tty:
            return
        if (size := window_size()) is not None:
            with suppress(Failure):
                await self._process.resize(rows=size[0], cols=size[1])

    def _leave(self, number: int) -> None:
        self.left_by = number
        self._tasks.cancel_scope.cancel()


@contextmanager
def raw_keys(*, wanted: bool) -> Generator[bool]:
    """Let every key through as it is, where there are keys; say whether there are."""
    if not wanted or not has_input() or not os.isatty(_IN):
        yield False
        return
    before = termios.tcgetattr(_IN)
    try:
        tty.setraw(_IN, termios.TCSADRAIN)
        yield True
    finally:
        termios.tcsetattr(_IN, termios.TCSANOW, before)


def window_size() -> tuple[int, int] | None:
    """The rows and columns of our terminal, if there is one."""
    for descriptor in (_IN, _OUT, _ERR):
        with suppress(OSError):
            size = os.get_terminal_size(descriptor)
            return (size.lines, size.columns) if size.lines and size.columns else None
    return None
