"""The program's first milliseconds: what a quick question costs."""

from __future__ import annotations

import re
import resource
import shlex
import socket
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.app.wiring.agent_choice import AgentChoices, ChosenAgent
from holdfast.cli.declarations import VERSION_LINE
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


@pytest.mark.parametrize("words", [["--help"], ["doctor", "--help"]])
def test_help_is_an_answer(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    assert capfd.readouterr().out.startswith("usage: holdfast")


@pytest.mark.promise("S1")
@pytest.mark.parametrize("given", ["</dev/null", "<&-", "</dev/null | cat", "true |", "socket"])
def test_without_a_terminal_and_an_agent_holdfast_ends_with_4(tmp_path: Path, given: str) -> None:
    ended = _alone(given, tmp_path)

    assert (ended.returncode, ended.stdout) == (4, "")
    assert "No agent is chosen yet" in ended.stderr
    assert "holdfast --demo" in ended.stderr or "holdfast ask --demo" in ended.stderr


@pytest.mark.parametrize("given", ["</dev/null", "<&-"])
def test_without_words_and_input_there_is_help_once_an_agent_is_chosen(
    tmp_path: Path, given: str
) -> None:
    AgentChoices(tmp_path / "state").remember(ChosenAgent("codex"))
    ended = _alone(given, tmp_path)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("usage: holdfast")


def _alone(given: str, home: Path) -> subprocess.CompletedProcess[str]:
    """What `holdfast` without words does with this as its input."""
    command = shlex.join(COMMAND)
    line = f"{given} {command}" if given.endswith("|") else f"{command} {given}"
    is_socket = given == "socket"  # as the children of node have it
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.shutdown(socket.SHUT_WR)
        return subprocess.run(
            COMMAND if is_socket else ["bash", "-o", "pipefail", "-c", line],
            env=environment(home),
            cwd=home,
            stdin=theirs.fileno() if is_socket else None,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


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


@pytest.mark.promise("S1")
@pytest.mark.parametrize("is_socket", [False, True])
def test_a_prompt_on_a_pipe_is_asked(tmp_path: Path, is_socket: bool) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    AgentChoices(home / "state").remember(ChosenAgent("codex"))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(b"Hello\n")
        ours.shutdown(socket.SHUT_WR)
        ended = subprocess.run(
            COMMAND if is_socket else ["sh", "-c", f"echo Hello | {shlex.join(COMMAND)}"],
            env=environment(home),
            cwd=project,
            stdin=theirs.fileno(),
            capture_output=True,
            check=False,
        )

    assert (ended.returncode, ended.stdout) == (3, b"")
    assert (
        b"codex sends the files it reads in this project to its model" in ended.stderr
    )  # so it was about to be asked
