"""A directory whose names are swapped for links that lead outside, as fast as anybody can."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECRET, INSIDE = b"secret", b"inside"

# Exchanges two names, in one step, as fast as it can, until its input ends.
SWAPPER = """
import ctypes, os, select, sys
exchange = ctypes.CDLL(None, use_errno=True).renameat2
one, other = (os.fsencode(name) for name in sys.argv[1:])
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    for _ in range(1000):
        if exchange(-100, one, -100, other, 2) != 0:
            raise OSError(ctypes.get_errno(), "exchange")
"""


def lay_traps(base: Path) -> Path:
    """Make a root and an outside of the same shape, and links from one to the other."""
    for top, content in [("root", INSIDE), ("outside", SECRET)]:
        (base / top / "a" / "b").mkdir(parents=True)
        (base / top / "a" / "b" / "file").write_bytes(content)
    (base / "root" / "a" / "trap").symlink_to("../../outside/a/b")
    (base / "root" / "a" / "b" / "trap").symlink_to("../../../outside/a/b/file")
    return base


@contextmanager
def swapping(one: Path, other: Path) -> Iterator[None]:
    """Exchange two names all the time, in a process of its own."""
    with subprocess.Popen(
        [sys.executable, "-c", SWAPPER, one, other],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as swapper:
        assert swapper.stdin is not None
        assert swapper.stdout is not None
        try:
            assert swapper.stdout.readline() == b"ready\n"
            yield
            assert swapper.poll() is None, "nobody was swapping any more"
        finally:
            swapper.stdin.close()
            swapper.wait(timeout=60)


def traps(place: Path, where: str) -> tuple[Path, Path]:
    """The name that is looked up and the link that takes its place: on the way, or at its end."""
    inside = place / "root" / "a"
    return (
        (inside / "b", inside / "trap")
        if where == "parent"
        else (
            inside / "b" / "file",
            inside / "b" / "trap",
        )
    )
