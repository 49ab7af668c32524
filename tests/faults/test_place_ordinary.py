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

SOME = (
    "tests/confine/place/test_creation.py",
    "tests/confine/place/test_creation_ownership.py",
    "tests/confine/place/test_files.py",
    "tests/confine/test_entry.py",
)
OTHERS = (
    "tests/confine/place/test_holder.py",
    "tests/confine/place/test_place.py",
    "tests/confine/place/test_place_records.py",
    "tests/confine/place/test_spawn.py",
)


@pytest.mark.parametrize(
    "files",
    [pytest.param(SOME, id="some"), pytest.param(OTHERS, id="others", marks=pytest.mark.long)],
)
def test_the_tests_of_places_pass_for_an_ordinary_user(files: tuple[str, ...]) -> None:
    complaint = run_tests_as_ordinary_user(*files)
    assert complaint is None, complaint
