"""A failure that looks like one of the sandbox is taken for one."""

from __future__ import annotations

import pytest

from holdfast.exec.server.process import is_denied


@pytest.mark.parametrize(
    ("status", "said", "expected"),
    [
        (0, b"Permission denied", False),
        (1, b"", False),
        (1, b"assertion failed", False),
        (1, b"touch: x: Read-only file system\n", True),
        (2, b"sh: cannot create x: Permission denied", True),
        (1, b"Operation not permitted\xff", True),
        (159, b"", True),
    ],
)
def test_which_ends_look_like_refusals(status: int, said: bytes, expected: bool) -> None:
    assert is_denied(status, said) == expected
