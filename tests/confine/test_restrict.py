"""A process that holds itself back."""

from __future__ import annotations

import errno
import os
import platform
import stat
import struct
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.confine import kernel
from holdfast.confine.fence import Fence
from holdfast.confine.restrict import filter_calls, landlock_version, shield, stay_within
from tests.confine.children import in_child

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has these calls")
READ, WRITE, MAKE = 1 << 2 | 1 << 3, 1 << 1, 1 << 8


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for name in ("granted", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    return tmp_path


@pytest.mark.skipif(landlock_version() == 0, reason="this kernel has no Landlock")
def test_what_is_not_granted_is_forbidden(directory: Path) -> None:
    fence = Fence(READ | WRITE | MAKE, 0, 0, [(str(directory / "granted"), READ)])

    def read(name: str) -> str:
        kernel.forbid_new_privileges()
        stay_within(fence)
        return (directory / name / "file").read_text()

    def write() -> int:
        kernel.forbid_new_privileges()
        stay_within(fence)
        return (directory / "granted" / "file").write_text("changed")

    outcomes = [in_child(lambda: read("granted")), in_child(lambda: read("other")), in_child(write)]
    assert outcomes == ["granted", "PermissionError", "PermissionError"]


@pytest.mark.skipif(landlock_version() == 0, reason="this kernel has no Landlock")
def test_a_path_that_is_not_there_is_granted_to_nobody(directory: Path) -> None:
    def act() -> str:
        kernel.forbid_new_privileges()
        stay_within(Fence(READ, 0, 0, [(str(directory / "absent"), READ)]))
        return (directory / "granted" / "file").read_text()

    assert in_child(act) == "PermissionError"


def test_calls_are_judged_from_then_on() -> None:
    number = {"x86_64": 39, "aarch64": 172}[platform.machine()]  # getpid
    refused = struct.pack(
        "=HBBIHBBIHBBIHBBI",
        *(0x20, 0, 0, 0),
        *(0x15, 0, 1, number),
        *(0x06, 0, 0, 0x0005_0000 | errno.EPERM),
        *(0x06, 0, 0, 0x7FFF_0000),
    )

    def act() -> bool:
        kernel.forbid_new_privileges()
        before = os.getpid()
        filter_calls(refused)
        return before > 0 > os.getpid()

    assert in_child(act) == "True"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can have another view of its own")
def test_what_is_shielded_is_read_only_in_a_view_of_its_own(directory: Path) -> None:
    os.mknod(directory / "device", 0o666 | stat.S_IFCHR, os.makedev(1, 3))

    def act() -> str:
        shield([str(directory / "granted"), str(directory / "device")])
        with open("/dev/null", "w") as device, suppress(OSError):
            device.write("usable")
            os.chmod(directory / "device", 0)
            return "chmod"
        return (directory / "granted" / "new").write_text("x") and "written"

    assert in_child(act) == "OSError"
    (directory / "granted" / "new").touch()
