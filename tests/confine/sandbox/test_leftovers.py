"""What stands in for a protected name is told from what somebody has made there."""

from __future__ import annotations

import stat

import pytest

from holdfast.confine.sandbox.leftovers import MARK, is_stand_in

DIRECTORY, FILE = stat.S_IFDIR | 0o755 | MARK, stat.S_IFREG | 0o644 | MARK


@pytest.mark.parametrize(
    ("path", "mode", "size", "expected"),
    [
        (".claude", DIRECTORY, 0, True),
        ("below/it/.claude", DIRECTORY, 0, True),
        (".git", DIRECTORY, 0, True),
        (".git/hooks", DIRECTORY, 0, True),
        (".git/config", FILE, 0, True),
        (".git/commondir", FILE, 2, True),
        (".git/commondir", FILE, 1, True),  # it was not written to its end
        (".claude", DIRECTORY & ~0o077, 0, True),  # as a mask narrows it
        (".claude", DIRECTORY, 1, False),  # somebody has put something there
        (".claude", DIRECTORY & ~MARK, 0, False),
        (".git/config", FILE, 1, False),
        (".git/config", FILE & ~MARK, 0, False),
        (".git/config", DIRECTORY, 0, False),
        (".mcp.json", FILE, 0, False),
        ("hooks", DIRECTORY, 0, False),
        ("HEAD", FILE, 0, True),
        ("refs", FILE, 0, True),
        ("HEAD", FILE, 1, False),
        ("objects", DIRECTORY, 0, False),
        ("x.claude", DIRECTORY, 0, False),
        ("src", DIRECTORY, 0, False),
    ],
)
def test_only_what_we_put_there_stands_in(path: str, mode: int, size: int, expected: bool) -> None:
    assert is_stand_in(path, mode, size) is expected
