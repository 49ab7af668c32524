"""Whatever is true of sessions in places and sandboxes for root is true for an ordinary user."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator

import pytest

from tests.exec.server.test_launcher import ORDINARY
from tests.parts.ordinary_user import GID, UID, run_tests_as_ordinary_user

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces"),
    pytest.mark.skipif(os.geteuid() != 0, reason="these tests are run by an ordinary user already"),
]

FILES = (
    "tests/exec/keeper/test_child_entering.py",
    "tests/exec/server/test_launcher.py",
    "tests/exec/server/test_places.py",
)


@pytest.fixture
def room() -> Iterator[None]:
    """A directory of that user's own that is not for temporary files."""
    os.makedirs(ORDINARY, exist_ok=True)
    os.chown(ORDINARY, UID, GID)
    yield
    shutil.rmtree(ORDINARY)


@pytest.mark.usefixtures("room")
def test_the_tests_of_confined_sessions_pass_for_an_ordinary_user() -> None:
    complaint = run_tests_as_ordinary_user(*FILES)

    assert complaint is None, complaint
