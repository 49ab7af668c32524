"""What the documents say about sandboxes is what happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.running import COMMAND
from tests.cli.sandboxes import needs_sandbox

ROOT = Path(__file__).parents[2]
HOW_TO = (ROOT / "docs/how-to/shut-a-command-in.md").read_text(encoding="utf-8")
PLACES = (ROOT / "docs/how-to/give-a-draft-its-place.md").read_text(encoding="utf-8")
SESSIONS = re.findall(r"```console\n(.*?)```", HOW_TO, re.DOTALL)


def steps(session: str) -> Iterator[tuple[str, str]]:
    """Each line that is typed, and what follows on the screen."""
    for part in session.split("\n$ "):
        line, _, answer = part.removeprefix("$ ").partition("\n")
        yield re.sub(r"\s+# .*", "", line), answer if answer.endswith("\n") else answer + "\n"


@pytest.mark.parametrize("session", SESSIONS)
def test_the_sessions_of_the_how_to_go_as_they_are_shown(session: str, tmp_path: Path) -> None:
    needs_sandbox()
    programs, project = tmp_path / "bin", tmp_path / "project"
    programs.mkdir()
    project.mkdir()
    (project / "notes.txt").write_text("buy bread\n")
    (programs / "holdfast").write_text(f'#!/bin/sh\nexec {" ".join(COMMAND)} "$@"\n')
    (programs / "holdfast").chmod(0o700)
    env = {"PATH": f"{programs}:{os.environ['PATH']}", "HOLDFAST_HOME": str(tmp_path / "home")}
    env["HOME"] = str(tmp_path / "me")
    shown = list(steps(session))

    seen: list[tuple[str, str]] = []
    for line, _ in shown:
        done = subprocess.run(
            ["sh", "-c", line],
            env=env,
            cwd=project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        seen.append((line, done.stdout))

    assert seen == [(line, answer if answer != "\n" else "") for line, answer in shown]


def test_the_program_about_places_runs_and_prints_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "notes.txt").write_text("original\n")
    program, printed = (
        PLACES.split(f"```{kind}\n")[1].split("```")[0] for kind in ("python", "text")
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "PLACE_UNAVAILABLE" in done.stderr:
        pytest.skip(f"no place can be made here: {done.stderr.splitlines()[-1]}")

    assert sorted(done.stdout.splitlines()) == sorted(printed.splitlines())
    assert (done.returncode, done.stderr) == (0, "")
