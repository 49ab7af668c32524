"""Whatever is true of drafts for root is true for an ordinary user."""

from __future__ import annotations

import os
import sys

import pytest

from tests.parts.ordinary_user import run_tests_as_ordinary_user

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces"),
    pytest.mark.skipif(os.geteuid() != 0, reason="these tests are run by an ordinary user already"),
]

SMALL = ("copying", "filling", "layers", "premises", "removing", "worktrees")


@pytest.mark.parametrize(
    "files",
    [
        ["tests/workbench/test_drafts.py"],
        ["tests/workbench/test_placing.py", "tests/workbench/test_views.py"],
        [
            "tests/confine/test_remounting.py",
            *(f"tests/workbench/test_{name}.py" for name in SMALL),
        ],
    ],
    ids=["drafts", "views", "parts"],
)
def test_the_tests_of_drafts_pass_for_an_ordinary_user(files: list[str]) -> None:
    complaint = run_tests_as_ordinary_user(*files)

    assert complaint is None, complaint
