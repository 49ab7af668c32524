"""Non-blocking terminal I/O: output, notes and questions.

A reader that stops reading, or a user who does not answer, blocks only the task that waits for
them; signals, deadlines and connections are still served.
"""

from __future__ import annotations

import errno
import os
import select
import sys
import termios
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TypeVar

import anyio
import anyio.lowlevel

from holdfast.cli.failures import OutputLost
from holdfast.cli.output import abandon, complain, encoded, is_terminal
from holdfast.cli.render.stop import AGAIN, consent

_IN, _OUT, _ERR = 0, 1, 2
_PIECE = 4096  # bytes that a pipe which says it is ready takes without blocking
_INPUT_PIECE = 65536
Answer = TypeVar("Answer")


class Terminal:
    """Standard output for text, standard error for notes and questions.

    On one screen only one of them is written at a time.
    """

    def __init__(self) -> None:
        self.can_ask = is_terminal(sys.stdin) and is_terminal(sys.stderr)
        self._is_shared = is_terminal(sys.stdout) and is_terminal(sys.stderr)
        self._floor = anyio.CapacityLimiter(1)
        self._text_floor = self._floor if self._is_shared else anyio.CapacityLimiter(1)
        self._has_text = False  # on a line of standard output that has not ended
        self._has_question = False  # on a line of standard error that has not ended
        self.is_dismissed = False
        self._question: anyio.CancelScope | None = None

    async def say(self, text: str) -> None:
        """Write text to standard output; raise when it took no more."""
        if not text:
            return
        async with self._text_floor:
            if self._is_shared and self._has_question:
                await self._tell(self._break())
            await self._answer(text)
            self._has_text = not text.endswith("\n")

    async def end_line(self) -> None:
        """End the line that text has begun, if it has not been ended."""
        if self._has_text:
            await self.say("\n")

    async def note(self, line: str) -> None:
        """Write a line to standard error, if anyone is left to read it."""
        async with self._floor:
            await self._tell(f"{self._break()}{line}\n")

    async def ask(
        self,
        page: str,
        prompt: str,
        meaning: Callable[[str], Answer | None],
        *,
        again: str = "",
        is_secret: bool = False,
    ) -> Answer | None:
        """Put a question until the answer has a meaning; None when no answer will come.

        Input that was typed before the question is discarded, so that it cannot answer it.
        """
        async with self._floor:
            if self.is_dismissed:
                return None
            with anyio.CancelScope() as self._question, _echo(not is_secret):
                with suppress(termios.error):
                    termios.tcflush(_IN, termios.TCIFLUSH)
                await self._tell(f"{self._break()}{page}  {prompt}")
                while True:
                    self._has_question = True
                    line = await _line()
                    if line is None:
                        return None
                    self._has_question = is_secret  # the line end was not shown either
                    answer = meaning(line)
                    if answer is not None:
                        return answer
                    await self._tell(f"{self._break()}  {again}")
        return None

    def dismiss(self) -> None:
        """Give up the question that is open, if one is, and ask no more."""
        self.is_dismissed = True
        if self._question is not None:
            self._question.cancel()

    def _break(self) -> str:
        """What ends the line that something else has begun."""
        is_begun = self._has_question or (self._has_text and self._is_shared)
        self._has_question = False
        self._has_text = self._has_text and not self._is_shared
        return "\n" if is_begun else ""

    async def _answer(self, text: str) -> None:
        try:
            if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]  # None when it was closed before us
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            await write_all(_OUT, encoded(text, sys.stdout))
        except OSError as error:
            abandon(_OUT)
            raise OutputLost(reason=error.strerror or str(error)) from error

    async def _tell(self, text: str) -> None:
        try:
            await write_all(_ERR, encoded(text, sys.stderr))
        except OSError:
            abandon(_ERR)


async def write_all(descriptor: int, data: bytes) -> None:
    """Write all data without blocking the event loop; raises OSError."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    while data:
        if not poll.poll(0):
            await anyio.wait_writable(descriptor)
        data = data[os.write(descriptor, data[:_PIECE]) :]


def has_input() -> bool:
    """Whether we have a standard input at all."""
    return sys.stdin is not None  # pyright: ignore[reportUnnecessaryComparison]  # None when it was closed before us


async def read_input() -> bytes:
    """Wait for what is typed or comes in; nothing once no more will come."""
    if not has_input():
        return b""
    try:
        await anyio.wait_readable(_IN)
    except PermissionError:
        # A file is always ready, and the loop does not watch such.
        await anyio.lowlevel.checkpoint()
    try:
        return os.read(_IN, _INPUT_PIECE)
    except OSError:
        return b""


def whole_input(bytes_most: int = -1) -> str:
    """All that comes in, as an argument would have it; nothing if nothing can come."""
    if not has_input():
        return ""
    return sys.stdin.buffer.read(bytes_most).decode("utf-8", errors="surrogateescape")


async def _line() -> str | None:
    """Wait for a line; None when the person, or their terminal, has left."""
    await anyio.wait_readable(_IN)
    try:
        return os.read(_IN, _PIECE).decode(errors="replace") or None
    except OSError:
        return None


@contextmanager
def _echo(wanted: bool) -> Generator[None]:
    """Show, or do not show, what is typed."""
    if wanted:
        yield
        return
    before = termios.tcgetattr(_IN)
    silent = [*before]
    silent[3] &= ~termios.ECHO
    termios.tcsetattr(_IN, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        termios.tcsetattr(_IN, termios.TCSADRAIN, before)


def confirmed(page: str, prompt: str) -> bool:
    """Show a page and ask for confirmation; False without a terminal."""
    return anyio.run(_asked, page, prompt)


async def _asked(page: str, prompt: str) -> bool:
    terminal = Terminal()
    if not terminal.can_ask:
        complain(page)
        return False
    return bool(await terminal.ask(page, prompt, consent, again=AGAIN))
