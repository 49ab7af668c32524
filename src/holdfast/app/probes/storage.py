"""Try what the state directory does with what is written to it."""

from __future__ import annotations

import os
import time

from holdfast.app.probes.answer import answer
from holdfast.app.probes.scratch import Facts, nearest, scratch, write_file

_SAMPLES = 15


def home(directory: str) -> Facts:
    """Write, rename and remove a file where the state directory is or will be."""
    exists = os.path.exists(directory)
    with scratch(directory) as place:
        write_file(f"{place}/new", b"x")
        os.replace(f"{place}/new", f"{place}/old")
    status = os.stat(nearest(directory))
    return {
        "exists": exists,
        "is_ours": status.st_uid == os.geteuid(),
        "mode": status.st_mode & 0o7777,
    }


def syncing(directory: str) -> Facts:
    """Time the sync of small appends, each to its end."""
    sync = getattr(os, "fdatasync", os.fsync)  # macOS has only the latter
    took: list[float] = []
    with scratch(directory) as place:
        file = os.open(f"{place}/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            for _ in range(_SAMPLES):
                os.write(file, b"x" * 4096)
                begin = time.perf_counter()
                sync(file)
                took.append(time.perf_counter() - begin)
        finally:
            os.close(file)
        place = os.path.realpath(place)
    return {"median": sorted(took)[_SAMPLES // 2], "samples": _SAMPLES, "place": place}


def space(directory: str) -> Facts:
    """Ask how much an unprivileged writer may still write."""
    facts = os.statvfs(nearest(directory))
    return {
        "bytes_free": facts.f_bavail * facts.f_frsize,
        "inodes_free": facts.f_favail,
        "inodes_total": facts.f_files,
    }


def clock(directory: str) -> Facts:
    """Compare the clock with the date that a new file gets."""
    with scratch(directory) as place:
        write_file(f"{place}/new", b"")
        return {"now": time.time(), "file_time": os.stat(f"{place}/new").st_mtime}


if __name__ == "__main__":
    answer(home, syncing, space, clock)
