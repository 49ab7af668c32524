"""A program called codex that plays a scenario, and a terminal to watch it on."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shlex
import struct
import subprocess
import termios
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cli.running import COMMAND, environment, harmless
from tests.parts import fake_app_server

BEGIN: dict[str, object] = {"begin": None}
END: dict[str, object] = {"end": "completed"}
FOREVER: dict[str, object] = {"until": "never"}
PATIENCE = 60.0


def pretend(directory: Path, scenario: Mapping[str, Any]) -> Path:  # Any: scenarios are JSON
    """Put a codex there that plays the scenario, whatever it is called with."""
    argv = fake_app_server.command(scenario, directory)
    program = directory / "codex"
    program.write_text(f"#!/bin/sh\nexec {shlex.join(argv)}\n")
    program.chmod(0o700)
    return program


def turning(directory: Path, *acts: Mapping[str, object]) -> Path:
    """Put a codex there whose turns go as these acts say."""
    return pretend(directory, {"on": {"turn/start": [list(acts)]}})


def sent(directory: Path, method: str) -> list[dict[str, Any]]:  # Any: JSON
    """What that codex was sent under this method."""
    return [m["params"] for m in fake_app_server.received(directory) if m.get("method") == method]


def answered(directory: Path) -> list[Any]:  # Any: JSON
    """What that codex was answered when it asked."""
    return [m["result"] for m in fake_app_server.received(directory) if "method" not in m]


class Screen:
    """What a person sees and types."""

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self.master, self.process = master, process
        self._shown = b""

    @property
    def text(self) -> str:
        """All that was shown so far, with the line ends of a file."""
        return self._shown.decode().replace("\r\n", "\n")

    def expect(self, text: str) -> None:
        """Wait until this is on the screen."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.text:
            assert self._read(deadline), f"{text!r} is not in {self.text!r}"

    def type(self, text: str) -> None:
        """Press these keys."""
        os.write(self.master, text.encode())

    def hang_up(self) -> None:
        """Take the terminal away."""
        os.close(self.master)
        self.master = os.open(os.devnull, os.O_RDWR)

    def end(self) -> tuple[int, str]:
        """Wait for the end; the exit status, and all that was shown."""
        deadline = time.monotonic() + PATIENCE
        while self._read(deadline):
            pass
        return self.process.wait(PATIENCE), self.text

    def _read(self, deadline: float) -> bool:
        if not select.select([self.master], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return False
        try:
            chunk = os.read(self.master, 65536)
        except OSError:  # Linux says EIO when the last writer has gone
            return False
        self._shown += chunk
        return bool(chunk)


@contextmanager
def terminal(argv: Sequence[str], env: Mapping[str, str], columns: int = 80) -> Generator[Screen]:
    """Run a program on a terminal of its own, where Ctrl-C is what it is for a person."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        argv,
        env=env,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(slave)
    screen = Screen(master, process)
    try:
        yield screen
    finally:
        process.kill()
        process.wait()
        os.close(screen.master)


@contextmanager
def on_terminal(*arguments: str, home: Path, columns: int = 80, **more: str) -> Generator[Screen]:
    """Run the command on a terminal, without colours."""
    env = environment(home, TERM="xterm", NO_COLOR="1", **more)
    with terminal([*COMMAND, *harmless(*arguments)], env, columns) as screen:
        yield screen
