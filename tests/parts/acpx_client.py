"""acpx, a client of the Agent Client Protocol from npm, pinned.

    python -m tests.parts.acpx_client          installs it once, and prints where it is

It comes by name from whatever registry npm is set up to use, into a cache inside the checkout.
Tests ask for it with `acpx()` and skip, saying why, where it cannot be had.
"""

from __future__ import annotations

import fcntl
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

VERSION = "0.19.1"
PACKAGE = f"acpx@{VERSION}"
CACHE = Path(__file__).parent.parent.parent / ".cache" / "npm" / f"acpx-{VERSION}"
INSTALL_LONGEST = 300.0


class Unavailable(Exception):
    """The client cannot be had here; says what is missing."""


def acpx() -> tuple[str, str]:
    """The command that starts it; skips the test that asks, naming what is missing."""
    found = _found_once()
    if isinstance(found, Unavailable):
        pytest.skip(f"acpx is missing: {found}")
    return found


@functools.cache
def _found_once() -> tuple[str, str] | Unavailable:
    try:
        return install()
    except Unavailable as missing:
        return missing


def install() -> tuple[str, str]:
    """Install it unless it is there; one process at a time, whole or not at all."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise Unavailable("node and npm are not installed")
    script = CACHE / "node_modules" / ".bin" / "acpx"
    CACHE.parent.mkdir(parents=True, exist_ok=True)
    with (CACHE.parent / "acpx.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not script.exists():
            _npm_install(npm)
    return node, str(script.resolve())


def _npm_install(npm: str) -> None:
    staging = Path(tempfile.mkdtemp(dir=CACHE.parent, prefix="installing-"))
    place = ["--prefix", str(staging), "--no-save", "--no-package-lock"]
    quiet = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
    try:
        done = subprocess.run(
            [npm, "install", *place, *quiet, PACKAGE],
            capture_output=True,
            text=True,
            timeout=INSTALL_LONGEST,
        )
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines() or ["it did not say why"]
            raise Unavailable(f"npm install {PACKAGE} failed (no network?): {said[-1]}")
        shutil.rmtree(CACHE, ignore_errors=True)
        staging.rename(CACHE)
    except subprocess.TimeoutExpired as late:
        raise Unavailable(f"npm install took more than {INSTALL_LONGEST:g} s") from late
    finally:
        shutil.rmtree(staging, ignore_errors=True)


if __name__ == "__main__":
    try:
        print(f"acpx {VERSION}: {install()[1]}")
    except Unavailable as missing:
        print(f"No acpx for the tests: {missing}")
