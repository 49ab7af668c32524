"""What is typed is completed from commands and from files of the project, and from nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.terminal.screen import Completed, completed


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    for name in ("src/main.py", "src/mouse.py", "setup.py", ".hidden", "bad\x1b[2J"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).touch()
    (tmp_path / "secret").touch()
    return project


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("look at @s", [Completed("@setup.py ", 2), Completed("@src/", 2)]),
        ("@src/m", [Completed("@src/main.py ", 6), Completed("@src/mouse.py ", 6)]),
        ("@src/ma", [Completed("@src/main.py ", 7)]),
        ("@.h", [Completed("@.hidden ", 3)]),
        ("@b", []),
        ("@../s", []),
        ("@/etc/pass", []),
        ("@~/", []),
        ("@nowhere/x", []),
        ("mail a@s", []),
        ("@s ", []),
        ("", []),
        ("/dif", [Completed("/diff ", 4, "show what the agent has changed")]),
    ],
)
def test_a_word_becomes_what_there_is(root: Path, typed: str, found: list[Completed]) -> None:
    assert list(completed(typed, root)) == found


def test_a_name_is_found_among_thousands(tmp_path: Path) -> None:
    for number in range(3000):
        (tmp_path / f"f{number:04}").touch()
    (tmp_path / "zebra").touch()

    assert list(completed("@z", tmp_path)) == [Completed("@zebra ", 2)]
    first = [each.text for each in completed("@f", tmp_path)]
    assert first[:2] == ["@f0000 ", "@f0001 "]
    assert len(first) == 50
