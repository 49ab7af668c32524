"""Everything that the tutorial says is typed, and is seen as it says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.running import COMMAND, short_home
from tests.parts.console_page import Reader, steps_of
from tests.parts.pty_screen import PtyScreen, on_screen

PAGE = Path(__file__).parents[2] / "docs/tutorial/first-ten-minutes.md"
SHELL = ("bash", "--norc", "--noprofile", "--noediting", "-i")

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("bash") is None, reason="bash is missing"),
]


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


@pytest.mark.skipif(shutil.which("pgrep") is None, reason="pgrep is missing (package procps)")
@pytest.mark.promise("A2")
def test_every_command_of_the_tutorial_does_what_is_shown() -> None:
    steps = steps_of(PAGE.read_text(encoding="utf-8"))
    with newcomer() as screen:
        Reader(screen).follow(steps)


@pytest.mark.parametrize("shown", ["two", "one\ntwo", "", "one…e"])
def test_a_page_that_shows_something_else_is_found_out(shown: str) -> None:
    page = f"```console\n$ echo one\n{shown}\n$ cd\n```\n".replace("\n\n", "\n")
    with newcomer() as screen, pytest.raises(AssertionError, match="echo one"):
        Reader(screen).follow(steps_of(page))


def test_names_are_learnt_and_what_is_left_out_may_be_anything() -> None:
    name = "cp_01m7gjdz2xyn6skt1tg45dfwbn"
    page = f"```console\n$ echo {'x' * 3}; echo cp_{'a' * 26}\n…\n{name}\n$ echo {name}\n…a\n```\n"
    with newcomer() as screen:
        Reader(screen).follow(steps_of(page))
