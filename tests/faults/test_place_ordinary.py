"""Whatever is true of places for root is true for an ordinary user."""

from __future__ import annotations

import os
import sys

import pytest

from tests.parts.ordinary_user import run_tests_as_ordinary_user

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces"),
    pytest.mark.skipif(os.geteuid() != 0, reason="these tests are run by an ordinary user already"),
]

FILES = tuple(
    f"tests/confine/test_{name}.py"
    for name in ("place", "creating", "holding", "apart", "records", "rooted", "ownership", "entry")
)


def test_the_tests_of_places_pass_for_an_ordinary_user() -> None:
    complaint = run_tests_as_ordinary_user(*FILES)

    assert complaint is None, complaint
