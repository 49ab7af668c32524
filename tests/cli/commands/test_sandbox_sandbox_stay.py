"""Signals and the end of a command that is shut in."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.pretending import on_terminal
from tests.cli.sandboxes import needs_sandbox, starting

CAREFUL = 'trap "echo cleaned; exit 9" {name}; echo ready; while :; do sleep 0.05; done'


@pytest.fixture(autouse=True)
def _in_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_sandbox()
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")


def begun(script: str, tmp_path: Path) -> subprocess.Popen[bytes]:
    process = starting("--", "sh", "-c", script, home=tmp_path / "home", cwd=Path.cwd())
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP", "QUIT"])
def test_a_signal_is_for_the_command_to_answer(name: str, tmp_path: Path) -> None:
    process = begun(CAREFUL.format(name=name), tmp_path)
    process.send_signal(signal.Signals[f"SIG{name}"])
    out, _ = process.communicate(timeout=60)

    assert (process.returncode, out) == (9, b"cleaned\n")


@pytest.mark.parametrize(("name", "status"), [("INT", 130), ("TERM", 143), ("HUP", 129)])
def test_a_command_that_has_no_answer_ends(name: str, status: int, tmp_path: Path) -> None:
    process = begun("echo ready; exec sleep 1000", tmp_path)
    process.send_signal(signal.Signals[f"SIG{name}"])
    process.communicate(timeout=60)

    assert process.returncode == status


def test_a_command_that_ignores_a_signal_goes_on(tmp_path: Path) -> None:
    process = begun('trap "" TERM; echo ready; read line; echo "got $line"', tmp_path)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(b"more\n", timeout=60)

    assert (process.returncode, out) == (0, b"got more\n")


def test_the_keys_of_a_terminal_interrupt_the_command_alone(tmp_path: Path) -> None:
    script = CAREFUL.format(name="INT")
    with on_terminal("sandbox", "--", "sh", "-c", script, home=tmp_path / "home") as screen:
        screen.expect("ready")
        screen.type("\x03")
        status, text = screen.end()

    assert status == 9
    assert "cleaned" in text


def test_children_in_the_background_end_with_the_command(tmp_path: Path) -> None:
    process = begun("sleep 1000 & echo ready; exit 3", tmp_path)
    out, _ = process.communicate(timeout=60)  # to the end of all who could write there

    assert (process.returncode, out) == (3, b"")
