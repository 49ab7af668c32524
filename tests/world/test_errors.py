"""Each error of the system becomes the failure that says what to do."""

from __future__ import annotations

import errno
import os

import pytest

from holdfast.failures import Failure, TooManyOpenFiles
from holdfast.world.errors import disk_failure
from holdfast.world.failures import (
    DiskDenied,
    DiskFull,
    DiskIo,
    DiskMissing,
    DiskOccupied,
    DiskQuota,
    DiskReadOnly,
    DiskUnusable,
)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.ENOSPC, DiskFull(path="/p")),
        (errno.EDQUOT, DiskQuota(path="/p")),
        (errno.EROFS, DiskReadOnly(path="/p")),
        (errno.EIO, DiskIo(path="/p", reason="Input/output error")),
        (errno.EACCES, DiskDenied(path="/p")),
        (errno.EPERM, DiskDenied(path="/p")),
        (errno.ENOENT, DiskMissing(path="/p")),
        (errno.ENOTDIR, DiskMissing(path="/p")),
        (errno.EEXIST, DiskOccupied(path="/p")),
        (errno.EMFILE, TooManyOpenFiles(reason="Too many open files")),
        (errno.ENXIO, DiskUnusable(path="/p", reason="No such device or address")),
    ],
    ids=lambda value: value.code if isinstance(value, Failure) else errno.errorcode[value],
)
def test_error_becomes_failure(number: int, expected: Failure) -> None:
    assert disk_failure(OSError(number, os.strerror(number)), path="/p") == expected


def test_an_error_without_words_is_still_told_apart() -> None:
    assert disk_failure(OSError("odd"), path="/p") == DiskUnusable(path="/p", reason="odd")
