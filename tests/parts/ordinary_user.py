"""Run something as an ordinary user, with our Python and our source, also when tests run as root.

    python tests/parts/ordinary_user.py COMMAND [ARGUMENT...]

Neither Python nor the checkout need be where that user may go: whatever stands in the way is
covered, for that one process and its children, by an empty directory with just what is needed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from holdfast.confine import kernel

UID = GID = 54_321  # nobody's; 65534 would also be what a user without a number in here looks like
CHECKOUT = Path(__file__).resolve().parents[2]


def missing_for_ordinary_user() -> str | None:
    """What keeps us from running something as an ordinary user, if anything does."""
    if sys.platform != "linux":
        return "only Linux has namespaces"
    return None


def as_ordinary_user(
    *command: str | os.PathLike[str], stdin: str = "", patience: float = 100.0
) -> subprocess.CompletedProcess[str]:
    """Run a command as an ordinary user and return what it said; we may be one ourselves.

    Use `sys.executable` for Python: `holdfast`, `tests` and all that is installed are there.
    """
    words = [os.fspath(word) for word in command]
    before = [] if os.geteuid() else [sys.executable, __file__]
    return subprocess.run(
        [*before, *words],
        input=stdin,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=patience,
        env=_environment(),
        cwd="/",
        check=False,
    )


def run_tests_as_ordinary_user(
    *files: str | os.PathLike[str], patience: float = 110.0
) -> str | None:
    """Run the tests of these files as an ordinary user; None if they pass, else what they said."""
    with ordinary_directory() as directory:
        names = [str(CHECKOUT / file) for file in files]
        options = ["-q", "-p", "no:cacheprovider", "--rootdir", str(CHECKOUT), "-rs"]
        place = [f"--basetemp={directory}/pytest", "-c", str(CHECKOUT / "pyproject.toml")]
        done = as_ordinary_user(
            sys.executable, "-m", "pytest", *options, *place, *names, patience=patience
        )
    return None if done.returncode == 0 else done.stdout + done.stderr


@contextmanager
def ordinary_directory() -> Iterator[Path]:
    """A directory of that user's own, below which there may be anything; it is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="ordinary-", ignore_cleanup_errors=True) as name:
        if os.geteuid() == 0:
            os.chown(name, UID, GID)
        yield Path(name)


def _environment() -> dict[str, str]:
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": "/nonexistent",
        "PYTHONPATH": f"{CHECKOUT}:{CHECKOUT / 'src'}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": f"{tempfile.gettempdir()}/hypothesis-ordinary",
    }


def _become(command: Sequence[str]) -> None:
    needed = {Path(name).resolve() for name in (sys.base_prefix, sys.prefix, str(CHECKOUT))}
    closed = {way for each in needed for way in each.parents if not way.stat().st_mode & 1}
    if closed:
        kernel.unshare(kernel.CLONE_NEWNS)
        kernel.mount(None, b"/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    for way in sorted(closed):
        if any(above in closed for above in way.parents):
            continue  # covered already
        below = [each for each in needed if way in each.parents]
        opened = [os.open(each, os.O_PATH | os.O_DIRECTORY) for each in below]
        kernel.mount(b"tmpfs", os.fsencode(way), b"tmpfs", options=b"mode=755")
        for each, descriptor in zip(below, opened, strict=True):
            each.mkdir(parents=True, exist_ok=True)
            source = b"/proc/self/fd/%d" % descriptor
            kernel.mount(source, os.fsencode(each), flags=kernel.MS_BIND | kernel.MS_REC)
            os.close(descriptor)
    os.setgroups([])
    os.setresgid(GID, GID, GID)
    os.setresuid(UID, UID, UID)
    os.execvp(command[0], list(command))


if __name__ == "__main__":
    _become(sys.argv[1:])
