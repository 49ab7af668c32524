"""A newcomer who follows the tutorial, and the picture of what they see in the middle of it.

python -m tests.journeys.tutorial_stage docs/terminal.svg
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from pyte.screens import Char

from tests.cli.running import COMMAND, short_home
from tests.parts.console_page import Reader, steps_of
from tests.parts.picture import picture
from tests.parts.pty_screen import PtyScreen, on_screen

PAGE = Path(__file__).parents[2] / "docs/tutorial/first-ten-minutes.md"
SHELL = ("bash", "--norc", "--noprofile", "--noediting", "-i")
PICTURED = "Done: three tests, and all of them pass."


@contextmanager
def newcomer() -> Generator[PtyScreen]:
    """A person in a clone that was made ready, with nothing in their home but that."""
    with short_home() as home:
        (home / "holdfast").mkdir()
        (home / "holdfast/.venv").symlink_to(sys.prefix)
        env = {"HOME": str(home), "PATH": os.defpath, "LANG": "C.UTF-8", "PS1": "$ "}
        if "PYTHONPATH" in os.environ:
            env["PYTHONPATH"] = os.environ["PYTHONPATH"]
        try:
            with on_screen(SHELL, cwd=home / "holdfast", env=env, size=(80, 50)) as screen:
                yield screen
        finally:
            state = str(home / ".local/state/holdfast")
            stop = [*COMMAND, "stop", "--all", "--state", state, "--yes"]
            subprocess.run(stop, env=env, capture_output=True, check=False, timeout=60)


def followed(screen: PtyScreen) -> Generator[str]:
    """Follow the tutorial; yield a picture of the agent that goes on after its host was killed."""
    steps = steps_of(PAGE.read_text(encoding="utf-8"))
    (at,) = (number for number, step in enumerate(steps, 1) if PICTURED in step.seen)
    reader = Reader(screen)
    reader.follow(steps[:at], then=">")
    yield picture(_crash(screen))
    reader.follow(steps[at:])


def _crash(screen: PtyScreen) -> list[list[Char]]:
    """The rows from what was asked before the host was killed on, to the last one."""
    asked = [number for number, line in enumerate(screen.lines) if line == "> Add a test"]
    last = max(number for number, line in enumerate(screen.lines) if line)
    return screen.cells[asked[0] : last + 1]


if __name__ == "__main__":
    with newcomer() as person:
        Path(sys.argv[1]).write_text(next(followed(person)), encoding="utf-8")
