"""Run the command as a person does: a real process with a small environment."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

COMMAND = [sys.executable, "-m", "holdfast.cli.main"]


@contextmanager
def short_home() -> Generator[Path]:
    """A home of a usual length: sockets lie below it, and their paths must be short."""
    with tempfile.TemporaryDirectory(prefix="home-") as path:
        yield Path(path)


def harmless(*words: str) -> tuple[str, ...]:
    """The same words, if they end nothing that other tests, or a person, have running here."""
    assert "--everywhere" not in words, words
    return words


def environment(home: Path, **more: str) -> dict[str, str]:
    """An environment with nothing in it that could change the answer, for the code under test."""
    tested = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {**tested, "HOLDFAST_HOME": str(home), **more}


def holdfast(
    *arguments: str, home: Path, stdin: int | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    return subprocess.run(
        [*COMMAND, *arguments],
        env=environment(home, **more),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
        stdin=stdin,
    )
