"""The ordinary user is ordinary: no number of root, no groups, no capabilities, our own Python."""

from __future__ import annotations

import os
import sys

import pytest

from tests.parts.ordinary_user import (
    as_ordinary_user,
    missing_for_ordinary_user,
    ordinary_directory,
)

pytestmark = pytest.mark.skipif(
    missing_for_ordinary_user() is not None, reason=str(missing_for_ordinary_user())
)

LOOK = """
import os, sys
import holdfast.confine.kernel, msgspec, tests.parts.ordinary_user
effective = next(line for line in open("/proc/self/status") if line.startswith("CapEff"))
print(0 in os.getresuid() + os.getresgid(), os.getgroups(), int(effective.split()[1], 16))
print(sys.version)
"""


def test_it_has_our_python_and_nothing_of_root() -> None:
    done = as_ordinary_user(sys.executable, "-c", LOOK)

    groups = [] if os.geteuid() == 0 else os.getgroups()
    assert (done.stdout, done.returncode) == (f"False {groups} 0\n{sys.version}\n", 0), done.stderr


def test_its_directory_is_its_own() -> None:
    with ordinary_directory() as directory:
        done = as_ordinary_user("mkdir", directory / "below")

        assert (done.stderr, [path.name for path in directory.iterdir()]) == ("", ["below"])
    assert not directory.exists()
