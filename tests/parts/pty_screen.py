"""A real terminal for a program, and what a person sees on it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pyte
from pyte.screens import Char

LONGEST = 60.0
FAINT, NORMAL = 2, 22  # numbers of SGR


class _Screen(pyte.HistoryScreen):
    """A screen that knows what is faint, for which pyte has no word: it says that it blinks."""

    def select_graphic_rendition(self, *attrs: int, **more: object) -> None:
        """Set how what follows looks."""
        super().select_graphic_rendition(*attrs, **more)
        for each in attrs:
            if each in (0, FAINT, NORMAL):
                self.cursor.attrs = self.cursor.attrs._replace(blink=each == FAINT)


class PtyScreen:
    """A terminal of some size, with a program in it."""

    def __init__(
        self, master: int, process: subprocess.Popen[bytes], size: tuple[int, int]
    ) -> None:
        self.master, self.process = master, process
        self.raw = b""
        self.columns = size[0]
        self._screen = _Screen(*size, history=10_000, ratio=0.5)
        self._stream = pyte.ByteStream(self._screen)

    @property
    def lines(self) -> list[str]:
        """What is on the screen now, a string for each row."""
        return [line.rstrip() for line in self._screen.display]

    @property
    def cells(self) -> list[list[Char]]:
        """What is on the screen now, and how it looks; what is faint says that it blinks."""
        columns = range(self._screen.columns)
        return [[self._screen.buffer[y][x] for x in columns] for y in range(self._screen.lines)]

    @property
    def scrolled(self) -> str:
        """All that was ever written, as far as it is kept: the scrollback, and the screen."""
        columns = range(self._screen.columns)
        top = ("".join(row[x].data for x in columns) for row in self._screen.history.top)
        return "\n".join([*(line.rstrip() for line in top), *self.lines])

    @property
    def row(self) -> int:
        """The number of the line, of all that `scrolled` has, where the cursor is."""
        return len(self._screen.history.top) + self._screen.cursor.y

    def type(self, text: str) -> None:
        """Press keys."""
        data = text.encode()
        while data:
            self._read(0)
            _, writable, _ = select.select([], [self.master], [], 0.1)
            if writable:
                data = data[os.write(self.master, data[:1024]) :]

    def sees(self, text: str) -> None:
        """Wait until a person can see a text, now or by scrolling back."""
        self.until(lambda: text in self.scrolled, text)

    def shows(self, text: str) -> None:
        """Wait until a text is on the screen now."""
        self.until(lambda: any(text in line for line in self.lines), text)

    def until(self, claim: Callable[[], bool], what: str = "") -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + LONGEST
        while not claim():
            assert time.monotonic() < deadline, f"never {what!r}:\n{self.scrolled}"
            self._read(0.1)

    def ended(self) -> int:
        """Wait for the program's end; return its status."""
        self.until(lambda: self.process.poll() is not None, "the end")
        self._read(0.2)
        return self.process.returncode

    def resize(self, columns: int, rows: int) -> None:
        """Make the window another size."""
        _set_size(self.master, columns, rows)
        self._screen.resize(rows, columns)
        self.process.send_signal(signal.SIGWINCH)

    def _read(self, seconds: float) -> None:
        readable, _, _ = select.select([self.master], [], [], seconds)
        while readable:
            try:
                data = os.read(self.master, 65536)
            except OSError:  # nobody has the other end open any more
                time.sleep(seconds)
                return
            self.raw += data
            self._stream.feed(data)
            if b"\x1b[6n" in data:  # where is the cursor?
                place = f"\x1b[{self._screen.cursor.y + 1};{self._screen.cursor.x + 1}R"
                os.write(self.master, place.encode())
            readable, _, _ = select.select([self.master], [], [], 0)


@contextmanager
def on_screen(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    size: tuple[int, int] = (80, 24),
) -> Generator[PtyScreen]:
    """Run a program in a terminal of its own; whatever is left of it ends with the block."""
    master, slave = pty.openpty()
    _set_size(master, *size)
    process = subprocess.Popen(
        argv,
        cwd=cwd,
        env={"TERM": "xterm-256color", **env},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(slave)
    try:
        yield PtyScreen(master, process, size)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(master)


def _set_size(descriptor: int, columns: int, rows: int) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
