"""Open what lies beneath a directory by a way on which there is no link at all.

Whoever changes things in a directory that others write to may not be led elsewhere by a link that
has just appeared. There is nothing to resolve here: a link on the way, or at the end of it, is
something that is not a directory or a file.
"""

from __future__ import annotations

import os

from holdfast.world.openat2 import has_openat2, open_past_no_link

_STEP = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)


def open_linkless(root: int, path: bytes, flags: int) -> int:
    """Open what exists at `path` below the directory `root`; raise OSError.

    ELOOP or ENOTDIR means that there is a link.
    """
    if b"/" not in path:
        return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=root)
    if has_openat2():
        return open_past_no_link(root, path, flags | os.O_NOFOLLOW)
    return open_step_by_step(root, path, flags)


def open_step_by_step(root: int, path: bytes, flags: int) -> int:
    """Do what `open_linkless` does where no one call does it."""
    *ways, name = path.split(b"/")
    here = root
    try:
        for way in ways:
            below = os.open(way, _STEP, dir_fd=here)
            if here != root:
                os.close(here)
            here = below
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
    finally:
        if here != root:
            os.close(here)
