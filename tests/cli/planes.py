"""A home with a local exec-server of its own, and nobody of it left afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.cli.running import COMMAND, environment, harmless, short_home


@contextmanager
def plane_home() -> Generator[Path]:
    """A home; whatever was started for it ends with the test."""
    with short_home() as home:
        try:
            yield home
        finally:
            for pid in started_for(home):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            eventually(lambda: not started_for(home))


def started_for(home: Path, *, word: str = "") -> list[int]:
    """The processes that live and were started with this home, and this word, in their command."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                command = (entry / "cmdline").read_bytes()
                if os.fsencode(f"{home}/") in command and word.encode() in command:
                    found.append(int(entry.name))
    return found


def eventually(holds: Callable[[], object], *, within: float = 60.0) -> None:
    """Wait until something is so that has no event of its own."""
    deadline = time.monotonic() + within
    while not holds():
        assert time.monotonic() < deadline, "it never came to be so"
        time.sleep(0.02)


def ran(*words: str, home: Path, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run a command line to its end, in bytes; without input its standard input is empty."""
    return subprocess.run(
        [*COMMAND, *harmless(*words)],
        env=environment(home),
        input=b"" if stdin is None else stdin,
        capture_output=True,
        timeout=100,
        check=False,
    )


def running(*words: str, home: Path) -> subprocess.Popen[bytes]:
    """Start a command line, with pipes for all three streams."""
    return subprocess.Popen(
        [*COMMAND, *words],
        env=environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,  # what one has read of a line, the other does not miss
    )
