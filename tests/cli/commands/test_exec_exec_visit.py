"""Be at a process with a terminal: its size, its keys, and our terminal as it was."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cli.planes import eventually, plane_home
from tests.cli.running import COMMAND, environment


@pytest.fixture(scope="module")
def home() -> Generator[Path]:
    with plane_home() as home:
        yield home


@dataclass
class Screen:
    """A terminal, what is at it, and all that it showed."""

    master: int
    slave: int
    process: subprocess.Popen[bytes]
    shown: bytes = field(default=b"")

    def until(self, holds: Callable[[bytes], object], *, within: float = 60.0) -> None:
        """Read what is shown until it satisfies."""
        deadline = time.monotonic() + within
        while not holds(self.shown):
            assert time.monotonic() < deadline, self.shown
            with suppress(BlockingIOError):
                self.shown += os.read(self.master, 4096)
                continue
            select.select([self.master], [], [], 1.0)

    def resize(self, rows: int, cols: int) -> None:
        """Change the window, as its person does."""
        termios.tcsetwinsize(self.slave, (rows, cols))
        self.process.send_signal(signal.SIGWINCH)


@contextmanager
def screen(*words: str, home: Path) -> Generator[Screen]:
    master, slave = pty.openpty()
    os.set_blocking(master, False)
    termios.tcsetwinsize(slave, (31, 97))
    process = subprocess.Popen(
        [*COMMAND, *words], env=environment(home), stdin=slave, stdout=slave, stderr=slave
    )
    try:
        yield Screen(master, slave, process)
    finally:
        process.kill()
        process.wait()
        os.close(master)
        os.close(slave)


def test_the_window_is_ours_and_follows_it(home: Path) -> None:
    script = "while :; do stty size; sleep 0.1; done"
    with screen("exec", "--tty", "--", "sh", "-c", script, home=home) as at:
        at.until(lambda shown: b"31 97\r\n" in shown)
        at.resize(40, 120)
        at.until(lambda shown: b"40 120\r\n" in shown)
        os.write(at.master, b"\x03")  # a key like any other: it interrupts the process

        assert at.process.wait(timeout=60) == 130


def test_the_window_has_its_size_from_the_start(home: Path) -> None:
    with screen("exec", "--tty", "--", "stty", "size", home=home) as at:
        at.until(lambda shown: b"\r\n" in shown)

        assert at.shown == b"31 97\r\n"


def test_an_outage_is_told_to_a_person_who_waits(tmp_path: Path, home: Path) -> None:
    serve = [sys.executable, "-m", "holdfast.exec.server", "--no-token", "--end-processes"]
    url = f"unix://{tmp_path / 's'}"
    tmp_path.chmod(0o700)
    with subprocess.Popen(
        [*serve, "--listen", url, "--state", str(tmp_path / "state")], stdout=subprocess.PIPE
    ) as server:
        assert server.stdout is not None
        server.stdout.readline()
        words = ("exec", "--server", url, "--", "sh", "-c", "echo ready; sleep 100")
        with screen(*words, home=home) as at:
            at.until(lambda shown: b"ready\r\n" in shown)
            server.terminate()
            at.until(lambda shown: b"(The server does not answer; trying again." in shown)
            at.process.send_signal(signal.SIGINT)
            at.process.send_signal(signal.SIGTERM)

            assert at.process.wait(timeout=60) in {130, 143}  # whichever was the second


def test_keys_leave_it_running_and_the_terminal_is_as_it_was(home: Path) -> None:
    with screen("exec", "--tty", "--", "cat", home=home) as at:
        before = termios.tcgetattr(at.slave)
        eventually(lambda: termios.tcgetattr(at.slave) != before)
        os.write(at.master, b"hello\r")
        at.until(lambda shown: shown.count(b"hello") == 2)
        os.write(at.master, b"~.")
        assert at.process.wait(timeout=60) == 129
        at.until(lambda shown: b"Attach with: holdfast attach cat-" in shown)

        assert termios.tcgetattr(at.slave) == before


def test_the_terminal_is_as_it_was_after_a_signal(home: Path) -> None:
    with screen("exec", "--tty", "--", "sleep", "100", home=home) as at:
        before = termios.tcgetattr(at.slave)
        eventually(lambda: termios.tcgetattr(at.slave) != before)
        at.process.send_signal(signal.SIGTERM)
        assert at.process.wait(timeout=60) == 143

        assert termios.tcgetattr(at.slave) == before
