"""The three streams of a command that is shut in: ours, but never our terminal itself.

Whoever has a terminal open can read what is typed there afterwards, and change how it behaves. So
a terminal is replaced by one of the command's own, and what goes through it is carried over.
"""

from __future__ import annotations

import os
import termios
import tty
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

import anyio

from holdfast.cli.terminal import pour

_STREAMS: Final = (0, 1, 2)
_PIECE: Final = 64 * 1024
_OUTPUT_FLAGS: Final = 1  # the place of these flags among the attributes of a terminal


class Streams:
    """What a command reads from and writes to; `files` is for its entry, until `hand_over`."""

    def __init__(self) -> None:
        self._ours = [number for number in _STREAMS if _is_terminal(number)]
        self._is_typed = 0 in self._ours and _is_in_front()
        self._theirs: list[int] = []
        self._master: int | None = None
        self.files = {number: number for number in _STREAMS if number not in self._ours}
        for number in self.files:
            if not _is_open(number):
                os.dup2(os.open(os.devnull, os.O_RDWR), number)
        if self._ours:
            self._open(self._ours[0])

    @property
    def has_terminal(self) -> bool:
        """Whether the command reads from a terminal."""
        return 0 in self._ours

    def hand_over(self) -> None:
        """Close what the command has now; when it has closed it too, its output has ended."""
        while self._theirs:
            os.close(self._theirs.pop())

    def resize(self) -> None:
        """Give its terminal the size of ours."""
        if self._master is not None:
            with suppress(OSError, termios.error):
                termios.tcsetwinsize(self._master, termios.tcgetwinsize(self._ours[0]))

    async def show(self) -> None:
        """Carry what it writes to our terminal; when that is gone, its own is gone, too."""
        if self._master is None:
            return
        screen = next((number for number in (1, 2) if number in self._ours), 0)
        with suppress(OSError):
            while data := await _read(self._master):
                await pour(screen, data)
        self._hang_up()

    async def feed(self) -> None:
        """Carry what is typed to it, key by key, for as long as anything is."""
        if not self._is_typed:
            return
        with suppress(OSError):
            while data := await _read(0):
                await self._type(data)

    @contextmanager
    def raw(self) -> Generator[None]:
        """Let every key through as it is; afterwards our terminal is as it was."""
        if not self._is_typed:
            yield
            return
        before = termios.tcgetattr(0)
        try:
            tty.setraw(0, termios.TCSADRAIN)
            yield
        finally:
            with suppress(termios.error):  # it may be gone
                termios.tcsetattr(0, termios.TCSADRAIN, before)

    def close(self) -> None:
        """Close what is left."""
        self.hand_over()
        self._hang_up()

    async def _type(self, data: bytes) -> None:
        if self._master is not None:
            await pour(self._master, data)

    def _hang_up(self) -> None:
        if self._master is not None:
            os.close(self._master)
            self._master = None

    def _open(self, like: int) -> None:
        """A terminal like ours, under a number of its own for each stream."""
        self._master, slave = os.openpty()
        attributes = termios.tcgetattr(like)
        if not self._is_typed:  # ours goes on to turn line ends into what screens need
            attributes[_OUTPUT_FLAGS] &= ~termios.OPOST
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        self._theirs = [slave, *(os.dup(slave) for _ in self._ours[1:])]
        self.files |= dict(zip(self._theirs, self._ours, strict=True))
        self.resize()


async def _read(descriptor: int) -> bytes:
    await anyio.wait_readable(descriptor)
    return os.read(descriptor, _PIECE)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _is_terminal(number: int) -> bool:
    return _is_open(number) and os.isatty(number)


def _is_in_front() -> bool:
    """Whether keys are for us; in the background, touching the terminal would stop us."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False
