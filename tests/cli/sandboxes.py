"""Run a command shut in, as a person does, in a directory of its own."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from holdfast.confine.policy import Strength
from holdfast.confine.sandbox.preflight import preflight
from tests.cli.running import COMMAND, environment

ROOT = Path(__file__).parents[2]


@cache
def _why_not() -> str:
    found = preflight()
    return "" if found.strength is Strength.FULL else "; ".join(found.reasons)


def needs_sandbox() -> None:
    """Skip where no whole sandbox can be made, and say why."""
    if _why_not():
        pytest.skip(f"no whole sandbox can be made here: {_why_not()}")


def shut(
    *words: str, home: Path, cwd: Path, stdin: bytes = b"", **more: str
) -> subprocess.CompletedProcess[bytes]:
    """Run `holdfast sandbox` to its end."""
    return subprocess.run(
        [*COMMAND, "sandbox", *words],
        env=environment(home, **more),
        cwd=cwd,
        input=stdin,
        capture_output=True,
        timeout=100,
        check=False,
    )


def held_back(how: str, *words: str, home: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command where only a "reduced" sandbox can be made, "none", or from "outside"."""
    return subprocess.run(
        [sys.executable, "-m", "tests.cli.held_back", how, *words],
        env=environment(home, PYTHONPATH=str(ROOT)),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def starting(*words: str, home: Path, cwd: Path) -> subprocess.Popen[bytes]:
    """Start `holdfast sandbox`, with pipes for its streams."""
    return subprocess.Popen(
        [*COMMAND, "sandbox", *words],
        env=environment(home),
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )
