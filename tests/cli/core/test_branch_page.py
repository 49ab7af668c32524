"""Commits that become a branch, laid out: nothing in them can steer a terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.cli.core.branch_page import (
    ShownBranch,
    ShownCommit,
    ShownFile,
    branch_page,
    branch_record,
    branch_taken_page,
)
from holdfast.cli.core.look import look

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
