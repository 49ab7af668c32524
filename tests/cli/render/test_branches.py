"""Commits that become a branch, laid out: nothing in them can steer a terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.cli.render.branches import (
    ShownBranch,
    ShownCommit,
    ShownFile,
    branch_page,
    branch_record,
    branch_taken_page,
)
from holdfast.cli.render.style import look
from holdfast.workbench.model import ChangeNote

PAGE = look(wanted="never", is_terminal=True, colourless=True, encoding="ascii", columns=80)
BRANCH = ShownBranch(
    draft="draft_1",
    branch="fix",
    tip="0123456789abcdef",
    count=2,
    commits=[ShownCommit(id="0123456789abcdef", author="A\x1b[2J", subject="S\x07")],
    files=[
        ShownFile(path="a\x1b", added=1, removed=2),
        ShownFile(path="b", added=None, removed=None),
    ],
    submodules=["lib"],
    is_there=False,
)


@pytest.mark.promise("W13")
def test_what_would_come() -> None:
    assert branch_page(BRANCH, PAGE).splitlines() == [
        "Branch fix would have:",
        "  0123456789ab  S\\x07  (A\\x1b[2J)",
        "  … and 1 older",
        "2 files changed:",
        "  a\\x1b  +1 -2",
        "  b  binary",
        "  with commits of the submodule lib",
    ]


@pytest.mark.promise("W13")
def test_what_runs_by_itself_is_shown_however_many_files_there_are() -> None:
    notes = (ChangeNote("mode 644 to 755"), ChangeNote("runs by itself: why\x1b", is_loud=True))
    quiet = [ShownFile(path=f"f{number:03}", added=1, removed=0) for number in range(200)]
    files = [*quiet, ShownFile(path="z", added=1, removed=0, notes=notes)]

    shown = replace(BRANCH, files=files, submodules=[])

    assert branch_page(shown, PAGE).splitlines()[-5:] == [
        "  f099  +1 -0",
        "  z  +1 -0",
        "      - mode 644 to 755",
        "      ! runs by itself: why\\x1b",
        "  ... and 100 more",
    ]
    listed = branch_record(shown)["files"]
    assert isinstance(listed, list)
    assert listed[-1] == {
        "path": "z",
        "added": 1,
        "removed": 0,
        "notes": [
            {"text": "mode 644 to 755", "loud": False},
            {"text": "runs by itself: why\x1b", "loud": True},
        ],
    }


def test_what_came_and_how_to_take_it_back() -> None:
    page = branch_taken_page(replace(BRANCH, branch="it's"), PAGE)
    assert page.startswith("+ Branch it's: 2 commits\n")
    assert page.endswith("    git branch -D 'it'\\''s'\n")
    assert "is there already" in branch_taken_page(replace(BRANCH, is_there=True), PAGE)


def test_the_same_for_a_program() -> None:
    record = branch_record(BRANCH)
    assert (record["type"], record["branch"], record["commit"]) == (
        "branch",
        "fix",
        "0123456789abcdef",
    )
