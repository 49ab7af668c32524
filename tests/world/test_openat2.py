"""The kernel's own way of staying beneath a directory, where there is one."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.world.openat2 import has_openat2, open_beneath, open_in_root

needs_it = pytest.mark.skipif(not has_openat2(), reason="this system has no openat2")


@needs_it
@pytest.mark.parametrize(
    ("path", "refusal"),
    [
        (b"inside", None),
        (b"loop", errno.ELOOP),
        (b"none", errno.ENOENT),
        (b"..", errno.EXDEV),
        (b"../x", errno.EXDEV),
        (b"/etc/passwd", errno.EXDEV),
        (b"absolute", errno.EXDEV),
        (b"up", errno.EXDEV),
        (b"n" * 256, errno.ENAMETOOLONG),
    ],
)
def test_only_what_is_beneath_is_opened(tmp_path: Path, path: bytes, refusal: int | None) -> None:
    (tmp_path / "inside").touch()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "absolute").symlink_to(tmp_path / "inside")
    (tmp_path / "up").symlink_to("../" + tmp_path.name + "/inside")
    root = os.open(tmp_path, os.O_RDONLY)
    found = None
    try:
        os.close(open_beneath(root, path, os.O_RDONLY, 0))
    except OSError as error:
        found = error.errno
    finally:
        os.close(root)

    assert found == refusal


@needs_it
@pytest.mark.parametrize("path", [b"inside", b"/inside", b"absolute", b"up", b"../../inside"])
def test_every_way_stays_in_a_root(tmp_path: Path, path: bytes) -> None:
    (tmp_path / "inside").write_text("inside")
    (tmp_path / "absolute").symlink_to("/inside")
    (tmp_path / "up").symlink_to("../../inside")
    root = os.open(tmp_path, os.O_RDONLY)
    try:
        with open(open_in_root(root, path, os.O_RDONLY, 0)) as found:
            assert found.read() == "inside"
    finally:
        os.close(root)


@needs_it
def test_magic_links_of_proc_are_refused() -> None:
    proc = os.open("/proc/self", os.O_RDONLY | os.O_DIRECTORY)
    try:
        with pytest.raises(OSError) as raised:
            open_beneath(proc, b"root", os.O_RDONLY, 0)
    finally:
        os.close(proc)

    assert raised.value.errno in {errno.ELOOP, errno.EXDEV}


@needs_it
def test_children_do_not_inherit_what_was_opened(tmp_path: Path) -> None:
    root = os.open(tmp_path, os.O_RDONLY)
    opened = open_beneath(root, b".", os.O_RDONLY, 0)
    try:
        assert not os.get_inheritable(opened)
    finally:
        os.close(opened)
        os.close(root)


def test_a_nul_is_a_bug_not_the_end_of_the_path(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="stop reading"):
        open_beneath(0, b"a\0b", os.O_RDONLY, 0)


_REFUSING_FILTER = """
import ctypes, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
# load the number of the call; 437 → answer with an error, else allow
program = b"".join(struct.pack("HBBI", *line) for line in [
    (0x20, 0, 0, 0), (0x15, 0, 1, 437), (0x06, 0, 0, 0x00050000 | int(sys.argv[1])),
    (0x06, 0, 0, 0x7FFF0000),
])
buffer = ctypes.create_string_buffer(program)
header = struct.pack("HxxxxxxQ", 4, ctypes.addressof(buffer))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, header, 0, 0) == 0, ctypes.get_errno()
from holdfast.world.files_beneath import OpenMode, Root
from holdfast.world.openat2 import has_openat2
from holdfast.nouns import RelativePath
assert not has_openat2()
with Root.at(sys.argv[2]) as root, root.open(RelativePath.of("f"), OpenMode.READ) as file:
    print(file.readall().decode())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="seccomp filters are Linux's")
@pytest.mark.parametrize("answer", [errno.ENOSYS, errno.EPERM])
def test_where_the_call_is_refused_files_are_still_reached(tmp_path: Path, answer: int) -> None:
    (tmp_path / "f").write_text("content")
    ran = subprocess.run(
        [sys.executable, "-c", _REFUSING_FILTER, str(answer), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=30,
        env={"PYTHONPATH": "src"},
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "content\n", "")
