"""No path, name or command gets an ordinary user's process out of the sandbox either."""

from __future__ import annotations

import os
import sys

import pytest

from tests.parts.ordinary_user import run_tests_as_ordinary_user

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces"),
    pytest.mark.skipif(os.geteuid() != 0, reason="these tests are run by an ordinary user already"),
]


@pytest.mark.parametrize("name", ["names", "paths", "commands"])
def test_the_tests_of_ways_out_pass_for_an_ordinary_user(name: str) -> None:
    complaint = run_tests_as_ordinary_user(f"tests/faults/test_sandbox_{name}.py")

    assert complaint is None, complaint
