"""What the system says about files, in the words of this wire."""

from __future__ import annotations

import errno

import pytest

from holdfast.exec.failures import FileFailed, FileMissing, RequestUnfit
from holdfast.exec.server.error_replies import file_failure
from holdfast.failures import Failure


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.ENOENT, FileMissing(path="/x", reason="told (os error 2)")),
        (errno.EACCES, RequestUnfit(reason="told (os error 13)")),
        (errno.EINVAL, RequestUnfit(reason="told (os error 22)")),
        (errno.EISDIR, FileFailed(path="/x", reason="told (os error 21)")),
    ],
)
def test_an_error_is_named(number: int, expected: Failure) -> None:
    assert file_failure(OSError(number, "told"), b"/x") == expected


def test_a_path_of_any_bytes_can_be_told() -> None:
    failure = file_failure(OSError(errno.EIO, "told"), b"/\xff")

    assert failure.details["path"] == "/\\xff"
