"""The real Codex binary, pinned in two versions, and a home in which it runs offline.

    python -m tests.parts.codex_binary          installs both once, and prints where they are

They come by name from whatever registry npm is set up to use, into a cache inside the checkout.
Tests ask for the newest with `codex_binary()`, for the oldest that is supported with
`codex_binary(OLDEST)`, and skip, saying why, where it cannot be had.
"""

from __future__ import annotations

import fcntl
import functools
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

VERSION = "0.166.0"  # the newest
OLDEST = "0.140.0"  # the oldest that is supported
NPM_CACHE = Path(__file__).parent.parent.parent / ".cache" / "npm"
CACHE = NPM_CACHE / f"codex-{VERSION}"
INSTALL_LONGEST = 600.0

_PLATFORMS = {  # what the npm wrapper looks for: its platform package, and the directory inside
    ("Linux", "x86_64"): ("codex-linux-x64", "x86_64-unknown-linux-musl"),
    ("Linux", "aarch64"): ("codex-linux-arm64", "aarch64-unknown-linux-musl"),
    ("Darwin", "x86_64"): ("codex-darwin-x64", "x86_64-apple-darwin"),
    ("Darwin", "arm64"): ("codex-darwin-arm64", "aarch64-apple-darwin"),
}

_CONFIG = """\
model = "{model}"
model_provider = "scripted"
approval_policy = "{approval_policy}"
sandbox_mode = "{sandbox_mode}"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = "{model_url}"
wire_api = "responses"
request_max_retries = {request_retries}
stream_max_retries = {stream_retries}
stream_idle_timeout_ms = {idle_ms}
supports_websockets = false

[analytics]
enabled = false

[features]
plugins = false
apps = false
shell_snapshot = false
unbounded_connection_retries = false
"""


class Unavailable(Exception):
    """The real Codex cannot be had here; says what is missing."""


def codex_binary(version: str = VERSION) -> Path:
    """The native binary; skips the test that asks, naming what is missing, where there is none."""
    found = _found_once(version)
    if isinstance(found, Unavailable):
        pytest.skip(f"the real codex {version} is missing: {found}")
    return found


@functools.cache
def _found_once(version: str) -> Path | Unavailable:
    """Look, and install, once a process: a missing network is not asked for again and again."""
    try:
        return install(version)
    except Unavailable as missing:
        return missing


def install(version: str = VERSION) -> Path:
    """Install a pinned Codex unless it is there; one process at a time, whole or not at all."""
    prefix = NPM_CACHE / f"codex-{version}"
    binary, wrapper = native_binary(prefix), wrapper_script(prefix)
    NPM_CACHE.mkdir(parents=True, exist_ok=True)
    with (NPM_CACHE / "codex.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (binary.exists() and wrapper.exists()):
            _npm_install(f"@openai/codex@{version}", prefix)
    if not os.access(binary, os.X_OK):
        raise Unavailable(f"codex {version} holds no program for {platform.machine()}")
    return binary


def _npm_install(package: str, prefix: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable("npm is not installed")
    staging = Path(tempfile.mkdtemp(dir=prefix.parent, prefix="installing-"))
    place = ["--prefix", str(staging), "--no-save", "--no-package-lock"]
    quiet = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
    command = [npm, "install", *place, *quiet, package]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_LONGEST)
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines() or ["it did not say why"]
            raise Unavailable(f"npm install {package} failed (no network?): {said[-1]}")
        shutil.rmtree(prefix, ignore_errors=True)
        staging.rename(prefix)
    except subprocess.TimeoutExpired as late:
        raise Unavailable(f"npm install took more than {INSTALL_LONGEST:g} s") from late
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def native_binary(prefix: Path) -> Path:
    """Where npm puts the program itself, inside the package for this platform."""
    machine = (platform.system(), platform.machine())
    if machine not in _PLATFORMS:
        raise Unavailable(f"there is no codex for {' '.join(machine)}")
    package, triple = _PLATFORMS[machine]
    return prefix / "node_modules" / "@openai" / package / "vendor" / triple / "bin" / "codex"


def wrapper_script(prefix: Path = CACHE) -> Path:
    """The node script that npm calls `codex`: it starts the native program as its child."""
    return prefix / "node_modules" / ".bin" / "codex"


def codex_home(
    directory: Path,
    model_url: str,
    *,
    model: str = "gpt-5.5",
    approval_policy: str = "never",
    sandbox_mode: str = "danger-full-access",
    request_retries: int = 0,
    stream_retries: int = 0,
    idle_ms: int = 10_000,
) -> dict[str, str]:
    """Write a home that speaks only with the scripted model; return the whole environment.

    Codex creates its sandbox helpers only where the home does not lie under TMPDIR, so the two
    are neighbours inside `directory`.
    """
    home, temporary = directory / "codex-home", directory / "codex-tmp"
    for each in (home, temporary):
        each.mkdir(parents=True, exist_ok=True)
    config = _CONFIG.format(
        model=model,
        approval_policy=approval_policy,
        sandbox_mode=sandbox_mode,
        model_url=model_url,
        request_retries=request_retries,
        stream_retries=stream_retries,
        idle_ms=idle_ms,
    )
    (home / "config.toml").write_text(config)
    return {
        "CODEX_HOME": str(home),
        "CODEX_APP_SERVER_DISABLE_MANAGED_CONFIG": "1",
        "HOME": str(home),
        "PATH": os.environ.get("PATH", os.defpath),
        "RUST_LOG": "warn",
        "TMPDIR": str(temporary),
    }


def main() -> None:
    """Install, and say in a line each how that went; tests skip where it went wrong."""
    for version in (VERSION, OLDEST):
        try:
            print(f"codex {version}: {install(version).relative_to(NPM_CACHE.parent.parent)}")
        except Unavailable as missing:
            print(f"codex {version} is missing ({missing}); the tests that need it will skip.")


if __name__ == "__main__":
    main()
