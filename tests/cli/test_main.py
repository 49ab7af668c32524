"""The program's first milliseconds: what a quick question costs."""

from __future__ import annotations

import re
import resource
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.cli.commands import VERSION_LINE
from holdfast.cli.main import main
from tests.cli.running import COMMAND, environment

BUDGET = 0.040  # CPU seconds above the bare interpreter
RUNS = 15
ASK_VERSION = ["-m", "holdfast.cli.main", "--version"]
FAR_TOO_MUCH = {
    "anyio",
    "argparse",
    "asyncio",
    "ctypes",
    "dataclasses",
    "holdfast.app",
    "holdfast.failures",
    "json",
    "msgspec",
    "prometheus_client",
    "sqlite3",
    "structlog",
    "subprocess",
}
TOO_MUCH_FOR_HELP = FAR_TOO_MUCH - {"argparse"}


@pytest.mark.parametrize("words", [["--version"], ["-V"]])
def test_the_version_is_said(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    assert capfd.readouterr() == (VERSION_LINE, "")


@pytest.mark.parametrize("words", [[], ["--help"], ["doctor", "--help"]])
def test_help_is_an_answer(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    assert capfd.readouterr().out.startswith("usage: holdfast")


def test_without_words_and_input_there_is_help(tmp_path: Path) -> None:
    closed = ["sh", "-c", 'exec "$@" <&-', "sh", sys.executable, "-m", "holdfast.cli.main"]
    ended = subprocess.run(
        closed, env=environment(tmp_path), capture_output=True, text=True, timeout=60, check=False
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("usage: holdfast")


def test_the_installed_command_is_this_one() -> None:
    command = Path(sys.executable).with_name("holdfast")
    if not command.exists():
        pytest.skip("holdfast is not installed beside this Python")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)

    assert done.stdout == VERSION_LINE


def test_asking_for_the_version_costs_little_more_than_the_interpreter(tmp_path: Path) -> None:
    """Both sides take turns, so that a busy moment of the machine meets both."""
    extra = statistics.median(
        _cpu(ASK_VERSION, tmp_path) - _cpu(["-c", "pass"], tmp_path) for _ in range(RUNS)
    )

    assert extra <= BUDGET


@pytest.mark.parametrize(
    ("words", "forbidden"), [("--version", FAR_TOO_MUCH), ("--help", TOO_MUCH_FOR_HELP)]
)
def test_a_quick_question_imports_little(words: str, forbidden: set[str], tmp_path: Path) -> None:
    bare = _imported(["-c", "pass"], tmp_path)
    ours = _imported(["-m", "holdfast.cli.main", words], tmp_path)

    assert (ours - bare) & forbidden == set()


def _cpu(arguments: list[str], home: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _run(arguments, home)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def _imported(arguments: list[str], home: Path) -> set[str]:
    noted = _run(["-X", "importtime", *arguments], home).stderr
    return set(re.findall(r"^import time:.*\|\s+([\w.]+)$", noted, re.MULTILINE))


def _run(arguments: list[str], home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment(home),
        capture_output=True,
        text=True,
        check=True,
    )


def test_a_prompt_on_a_pipe_is_asked_and_nothing_is_help(tmp_path: Path) -> None:
    def ran(given: str) -> subprocess.CompletedProcess[bytes]:
        line = (
            f"{given} {shlex.join(COMMAND)}" if "|" in given else f"{shlex.join(COMMAND)} {given}"
        )
        return subprocess.run(
            ["sh", "-c", line],
            env=environment(tmp_path),
            cwd=tmp_path,
            capture_output=True,
            check=False,
        )

    piped, nothing = ran("echo Hello |"), ran("</dev/null")

    assert (piped.returncode, b"No agent is chosen yet" in piped.stderr) == (4, True)
    assert nothing.stdout.startswith(b"usage: holdfast")
