"""Everything is covered, except what has a reason."""

from __future__ import annotations

import stat

import pytest

from holdfast.nouns import PATH_BYTES_MAX, RelativePath
from holdfast.workbench.coverage import (
    DEPTH_MAX,
    EVERYTHING,
    Coverage,
    covers_xattr,
    uncovered_reason,
)
from holdfast.workbench.model import UncoveredReason

BUILD = Coverage(frozenset({RelativePath.of(b"out/build")}))
DEEP = b"/".join([b"d"] * DEPTH_MAX)


@pytest.mark.parametrize(
    ("path", "mode", "coverage", "expected"),
    [
        (b".env", stat.S_IFREG | 0o600, EVERYTHING, None),
        (b".git/hooks/pre-commit", stat.S_IFREG | 0o755, EVERYTHING, None),
        (b"\xff\n", stat.S_IFLNK, EVERYTHING, None),
        (b"node_modules", stat.S_IFDIR, EVERYTHING, None),
        (b"pipe", stat.S_IFIFO, EVERYTHING, UncoveredReason.SPECIAL),
        (b"socket", stat.S_IFSOCK, EVERYTHING, UncoveredReason.SPECIAL),
        (b"disk", stat.S_IFBLK, EVERYTHING, UncoveredReason.SPECIAL),
        (b"out/build", stat.S_IFDIR, BUILD, UncoveredReason.POLICY),
        (b"out/build", stat.S_IFREG, BUILD, UncoveredReason.POLICY),
        (b"out/builds", stat.S_IFDIR, BUILD, None),
        (b"build", stat.S_IFDIR, BUILD, None),
        (DEEP, stat.S_IFDIR, EVERYTHING, UncoveredReason.TOO_DEEP),
        (DEEP, stat.S_IFREG, EVERYTHING, None),
        (DEEP[2:], stat.S_IFDIR, EVERYTHING, None),
        (b"n" * (PATH_BYTES_MAX + 1), stat.S_IFREG, EVERYTHING, UncoveredReason.TOO_DEEP),
    ],
)
def test_coverage(
    path: bytes, mode: int, coverage: Coverage, expected: UncoveredReason | None
) -> None:
    assert uncovered_reason(path, mode, is_other_mount=False, coverage=coverage) == expected


def test_another_file_system_is_left_alone() -> None:
    assert (
        uncovered_reason(b"m", stat.S_IFDIR, is_other_mount=True, coverage=EVERYTHING)
        is UncoveredReason.MOUNTED
    )


def test_every_coverage_has_a_mark_of_its_own() -> None:
    other = Coverage(frozenset({RelativePath.of(b"out"), RelativePath.of(b"build")}))

    assert len({EVERYTHING.mark, BUILD.mark, other.mark}) == 3
    assert Coverage(frozenset(sorted(other.left_out, reverse=True))).mark == other.mark


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (b"user.note", True),
        (b"system.posix_acl_access", True),
        (b"user.overlay.opaque", False),
        (b"trusted.overlay.opaque", False),
        (b"security.selinux", False),
    ],
)
def test_attributes_of_the_person_are_covered(name: bytes, expected: bool) -> None:
    assert covers_xattr(name) is expected
