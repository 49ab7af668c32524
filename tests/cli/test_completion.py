"""Completion and the manual are printed for whoever asks."""

from __future__ import annotations

from pathlib import Path

from tests.cli.running import holdfast


def test_a_script_and_a_page_are_printed(tmp_path: Path) -> None:
    assert "complete -F _holdfast holdfast" in holdfast("completion", "bash", home=tmp_path).stdout
    assert holdfast("man", home=tmp_path).stdout.startswith(".TH HOLDFAST 1")
    wrong = holdfast("completion", "tcsh", home=tmp_path)
    assert (wrong.returncode, "bash, zsh, fish" in wrong.stderr) == (2, True)
