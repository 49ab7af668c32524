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

SOME = ("creating", "rooted", "ownership", "entry")
OTHERS = ("place", "holding", "apart", "records")


@pytest.mark.parametrize(
    "names",
    [pytest.param(SOME, id="some"), pytest.param(OTHERS, id="others", marks=pytest.mark.long)],
)
def test_the_tests_of_places_pass_for_an_ordinary_user(names: tuple[str, ...]) -> None:
    complaint = run_tests_as_ordinary_user(*(f"tests/confine/test_{name}.py" for name in names))
    assert complaint is None, complaint
