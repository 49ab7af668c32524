"""System calls that Python has no function for."""

from __future__ import annotations

import errno
import os
import platform
from pathlib import Path

import pytest

from holdfast.app.probes import kernel

pytestmark = pytest.mark.skipif(platform.system() != "Linux", reason="these calls are Linux's own")


def test_a_path_inside_opens_and_one_that_leads_out_does_not(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "out").symlink_to("/etc")
    root = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.close(kernel.open_beneath(b"inside", root=root))
        for path in (b"..", b"out", b"/etc", b"inside/../.."):
            with pytest.raises(OSError) as refused:
                kernel.open_beneath(path, root=root)
            assert refused.value.errno == errno.EXDEV
    finally:
        os.close(root)


def test_errors_of_the_kernel_are_system_errors() -> None:
    with pytest.raises(OSError) as refused:
        kernel.mount("nonesuch-fs", b"/nonexistent-for-holdfast")

    assert refused.value.errno in {errno.ENOENT, errno.EPERM, errno.ENODEV}


def test_unsharing_what_does_not_exist_is_refused() -> None:
    with pytest.raises(OSError) as refused:
        kernel.unshare(1)

    assert refused.value.errno == errno.EINVAL


def test_landlock_has_a_version_or_is_missing() -> None:
    try:
        assert kernel.landlock_abi() >= 1
    except OSError as error:
        assert error.errno in {errno.ENOSYS, errno.EOPNOTSUPP}
