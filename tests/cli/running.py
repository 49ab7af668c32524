"""Run the command as a person does: a real process with a small environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COMMAND = [sys.executable, "-m", "holdfast.cli.main"]


def environment(home: Path, **more: str) -> dict[str, str]:
    """An environment with nothing in it that could change the answer."""
    return {"PATH": os.environ["PATH"], "HOLDFAST_HOME": str(home), **more}


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
