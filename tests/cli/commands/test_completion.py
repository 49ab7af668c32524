"""Completion and the manual are printed for whoever asks."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.running import COMMAND, environment, holdfast
from tests.parts.pty_screen import on_screen


def test_a_script_and_a_page_are_printed(tmp_path: Path) -> None:
    assert "complete -F _holdfast holdfast" in holdfast("completion", "bash", home=tmp_path).stdout
    assert holdfast("man", home=tmp_path).stdout.startswith(".TH HOLDFAST 1")
    wrong = holdfast("completion", "tcsh", home=tmp_path)
    assert (wrong.returncode, "bash, zsh, fish" in wrong.stderr) == (2, True)


@pytest.mark.promise("S5")
def test_on_a_terminal_the_manual_is_formatted(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "man").write_text('#!/bin/sh\necho "formatted: $1"; head -c 16 "$2"\n')
    (programs / "man").chmod(0o755)
    env = environment(tmp_path, PATH=f"{programs}:/usr/bin:/bin")
    with on_screen([*COMMAND, "man"], cwd=tmp_path, env=env, size=(80, 24)) as screen:
        screen.sees("formatted: -l")
        screen.sees(".TH HOLDFAST 1")
        assert screen.ended() == 0
    with on_screen([*COMMAND, "man", "--roff"], cwd=tmp_path, env=env, size=(80, 24)) as screen:
        assert screen.ended() == 0
        assert "formatted" not in screen.scrolled


@pytest.mark.promise("S5")
@pytest.mark.skipif(shutil.which("man") is None, reason="there is no man here")
@pytest.mark.parametrize("term", ["dumb", ""])
def test_a_dumb_terminal_gets_the_manual_as_plain_lines(tmp_path: Path, term: str) -> None:
    env = environment(tmp_path, TERM=term)
    with on_screen([*COMMAND, "man"], cwd=tmp_path, env=env, size=(80, 24)) as screen:
        assert screen.ended() == 0
        assert "SYNOPSIS" in screen.scrolled
        assert (b"\x1b" in screen.raw, b"\b" in screen.raw) == (False, False)
