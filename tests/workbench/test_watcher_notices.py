"""What the system says in bytes is read as it is meant."""

from __future__ import annotations

from struct import pack

import pytest

from holdfast.workbench.watcher import (
    CREATE,
    DELETE,
    IS_DIRECTORY,
    MODIFY,
    MOVED_TO,
    OVERFLOW,
    Notice,
    decode_notices,
)


def spelled(notice: Notice, padding: int = 16) -> bytes:
    name = notice.name.ljust(padding, b"\0") if notice.name else b""
    return pack("=iIII", notice.watch, notice.mask, 0, len(name)) + name


def test_notices_follow_each_other() -> None:
    notices = [Notice(1, MODIFY, b"a"), Notice(-1, OVERFLOW, b""), Notice(7, CREATE, b"\xff b")]

    assert list(decode_notices(b"".join(map(spelled, notices)))) == notices
    assert list(decode_notices(b"")) == []


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (CREATE | IS_DIRECTORY, True),
        (MOVED_TO | IS_DIRECTORY, True),
        (DELETE | IS_DIRECTORY, False),
        (CREATE, False),
    ],
)
def test_a_directory_that_has_come_must_be_watched(mask: int, expected: bool) -> None:
    assert Notice(1, mask, b"d").brings_directory is expected
