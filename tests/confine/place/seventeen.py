"""Seventeen things that people do with files, done in the current directory; what failed is said.

Run as a program inside a place; it needs only the standard library.
"""

from __future__ import annotations

import mmap
import os
import sys
from pathlib import Path


def write() -> None:
    """Make a file, and replace the content of an old one."""
    Path("new").write_text("new")
    Path("old").write_text("changed")
    assert (Path("new").read_text(), Path("old").read_text()) == ("new", "changed")


def append() -> None:
    """Append to an old file."""
    with open("below/other", "a") as file:
        file.write("+")
    assert Path("below/other").read_text() == "other+"


def rename() -> None:
    """Rename an old file over a new one."""
    Path("target").write_text("target")
    os.rename("below/deep/deepest", "target")
    assert Path("target").read_text() == "deepest"


def unlink() -> None:
    """Remove an old file."""
    os.unlink("link")
    assert not os.path.lexists("link")


def mkdir() -> None:
    """Make a directory in an old one."""
    os.mkdir("below/made")
    assert os.path.isdir("below/made")


def rmdir() -> None:
    """Remove an old directory that has become empty."""
    os.rmdir("below/deep")
    assert not os.path.exists("below/deep")


def symlink() -> None:
    """Make a link and follow it."""
    os.symlink("old", "pointer")
    assert Path("pointer").read_text() == "changed"


def link() -> None:
    """Make a second name of a file."""
    os.link("new", "twin")
    assert os.path.samefile("new", "twin")


def chmod() -> None:
    """Change the mode of a file."""
    os.chmod("below/other", 0o640)
    assert os.stat("below/other").st_mode & 0o777 == 0o640


def utime() -> None:
    """Change the times of a file."""
    os.utime("below/other", ns=(5, 7_000_000_000))
    assert os.stat("below/other").st_mtime_ns == 7_000_000_000


def truncate() -> None:
    """Cut a file."""
    os.truncate("below/other", 2)
    assert Path("below/other").read_text() == "ot"


def xattr() -> None:
    """Attach something to a file."""
    os.setxattr("old", "user.note", b"note")
    assert os.getxattr("old", "user.note") == b"note"


def mapped() -> None:
    """Write to a file through memory."""
    with open("old", "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[:3] = b"CHA"
        memory.flush()
    assert Path("old").read_text() == "CHAnged"


def tmpfile() -> None:
    """Give a file without a name one."""
    file = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o644)
    os.write(file, b"named")
    ours = os.open("/proc/self/fd", os.O_RDONLY)  # without it, Python would link the link
    os.link(str(file), "named", src_dir_fd=ours, follow_symlinks=True)
    assert Path("named").read_text() == "named"


def rename_directory() -> None:
    """Rename a directory with what is in it."""
    Path("below/made/inside").write_text("inside")
    os.rename("below/made", "moved")
    assert Path("moved/inside").read_text() == "inside"


def fsync() -> None:
    """Have a file and its directory on the disk."""
    for name in ("old", "."):
        descriptor = os.open(name, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def readdir() -> None:
    """Read the directories as all of the above has left them."""
    names = {"below", "moved", "named", "new", "old", "pointer", "target", "twin"}
    assert (set(os.listdir()), os.listdir("below")) == (names, ["other"])


ACTS = (
    *(write, append, rename, unlink, mkdir, rmdir, symlink, link, chmod, utime, truncate, xattr),
    *(mapped, tmpfile, rename_directory, fsync, readdir),
)

if __name__ == "__main__":
    for act in ACTS:
        try:
            act()
        except (OSError, AssertionError) as error:
            print(act.__name__, type(error).__name__, error)
    print(len(ACTS), "done")
    sys.exit(0)
