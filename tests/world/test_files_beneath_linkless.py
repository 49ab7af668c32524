"""No link leads anywhere, on the way or at the end of it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from holdfast.world.files_beneath import open_linkless, open_step_by_step

CASES = [
    (b"file", None),
    (b"directory/file", None),
    (b"directory", None),
    (b".", None),
    (b"link", errno.ELOOP),
    (b"away", errno.ELOOP),
    (b"away/file", errno.ELOOP),
    (b"directory/inside/file", errno.ELOOP),
    (b"none", errno.ENOENT),
    (b"none/file", errno.ENOENT),
    (b"file/below", errno.ENOTDIR),
    (b"n" * 256, errno.ENAMETOOLONG),
]


@pytest.mark.promise("W10")
@pytest.mark.parametrize("opener", [open_linkless, open_step_by_step])
@pytest.mark.parametrize(("path", "refusal"), CASES)
def test_only_plain_ways_lead_anywhere(
    tmp_path: Path, opener: type[open_linkless], path: bytes, refusal: int | None
) -> None:
    top = tmp_path / "top"
    (top / "directory").mkdir(parents=True)
    for each in (top, top / "directory", tmp_path):
        (each / "file").touch()
    (top / "link").symlink_to("file")
    (top / "away").symlink_to("..")
    (top / "directory" / "inside").symlink_to("../directory")
    root = os.open(top, os.O_RDONLY)
    before = os.listdir("/proc/self/fd")
    found = None
    try:
        os.close(opener(root, path, os.O_RDONLY))
    except OSError as error:
        # A link on the way is no directory; which of the two words is said differs.
        found = (
            errno.ELOOP if error.errno == errno.ENOTDIR and path != b"file/below" else error.errno
        )
    finally:
        assert len(os.listdir("/proc/self/fd")) == len(before)
        os.close(root)

    assert found == refusal
