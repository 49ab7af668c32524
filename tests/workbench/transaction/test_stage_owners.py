"""Whose something new becomes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.nouns import RelativePath
from holdfast.workbench.transaction.stage import Owners
from tests.workbench.unprivileged import held_back

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")


@pytest.fixture
def owners(project: Path) -> Iterator[Owners]:
    (project / "d").mkdir()
    (project / "shared").mkdir()
    (project / "away").symlink_to("..")
    if os.geteuid() == 0:
        os.chown(project / "d", 1001, 2001)
        os.chown(project / "shared", 1002, 2002)
    os.chmod(project / "shared", 0o2775)
    root = os.open(project, os.O_RDONLY)
    yield Owners(root)
    os.close(root)


@needs_root
@pytest.mark.parametrize(
    ("path", "as_root", "as_other"),
    [
        ("new", (0, 0), (-1, -1)),
        ("d/new", (1001, 2001), (-1, -1)),
        ("d/none/new", (1001, 2001), (-1, -1)),
        ("shared/new", (1002, 2002), (-1, 2002)),
        ("shared/none/none/new", (1002, 2002), (-1, 2002)),
        ("away/new", (0, 0), (-1, -1)),
        ("none/new", (0, 0), (-1, -1)),
    ],
)
def test_it_becomes_as_the_directory_is(
    owners: Owners, path: str, as_root: tuple[int, int], as_other: tuple[int, int]
) -> None:
    assert owners.of(RelativePath.of(path)) == as_root
    with held_back():
        assert owners.of(RelativePath.of(path)) == as_other


@needs_root
def test_it_becomes_as_what_it_replaces(owners: Owners, project: Path) -> None:
    path = RelativePath.of("d/old")
    owners.note(path, os.stat(project / "shared"))

    assert owners.of(path) == (1002, 2002)
