"""Real MCP servers from npm, pinned: what people run beside an agent.

    python -m tests.parts.mcp_servers          installs them once, and prints where they are

They come by name from whatever registry npm is set up to use, into a cache inside the checkout.
Tests ask for them with `mcp_server()` and skip, saying why, where they cannot be had.
"""

from __future__ import annotations

import fcntl
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

VERSION = "2026.8.31"
NAMES = ("server-everything", "server-filesystem")
CACHE = Path(__file__).parent.parent.parent / ".cache" / "npm" / f"mcp-{VERSION}"
INSTALL_LONGEST = 300.0


class Unavailable(Exception):
    """The servers cannot be had here; says what is missing."""


def mcp_server(name: str) -> tuple[str, str]:
    """The command of one of them; skips the test that asks, naming what is missing."""
    assert name in NAMES
    found = _found_once()
    if isinstance(found, Unavailable):
        pytest.skip(f"the real MCP servers are missing: {found}")
    node, place = found
    return node, str(place / name / "dist" / "index.js")


@functools.cache
def _found_once() -> tuple[str, Path] | Unavailable:
    """Look, and install, once a process: a missing network is not asked for again and again."""
    try:
        return install()
    except Unavailable as missing:
        return missing


def install() -> tuple[str, Path]:
    """Install them unless they are there; one process at a time, all or none; say where."""
    node = shutil.which("node")
    if node is None:
        raise Unavailable("node is not installed")
    CACHE.parent.mkdir(parents=True, exist_ok=True)
    with (CACHE.parent / "mcp.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not CACHE.exists():
            _npm_install()
    return node, CACHE / "node_modules" / "@modelcontextprotocol"


def _npm_install() -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable("npm is not installed")
    staging = Path(tempfile.mkdtemp(dir=CACHE.parent, prefix="installing-"))
    place = ["--prefix", str(staging), "--no-save", "--no-package-lock"]
    quiet = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
    packages = [f"@modelcontextprotocol/{name}@{VERSION}" for name in NAMES]
    command = [npm, "install", *place, *quiet, *packages]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_LONGEST)
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines() or ["it did not say why"]
            raise Unavailable(f"npm install of MCP servers failed (no network?): {said[-1]}")
        staging.rename(CACHE)
    except subprocess.TimeoutExpired as late:
        raise Unavailable(f"npm install took more than {INSTALL_LONGEST:g} s") from late
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def main() -> None:
    """Install, and say in one line how that went; tests skip where it went wrong."""
    try:
        print(f"MCP servers {VERSION}: {install()[1].relative_to(CACHE.parent.parent.parent)}")
    except Unavailable as missing:
        print(f"MCP servers {VERSION} are missing ({missing}); the tests that need them will skip.")


if __name__ == "__main__":
    main()
