"""The Autobahn test suite, which plays every trick of a WebSocket peer, and its verdicts.

It needs Python 2.7 and comes by name from whatever package index pip is set up to use, into a
cache inside the checkout. Tests that ask for it skip, saying why, where it cannot be had.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

PACKAGE = "autobahntestsuite==25.10.1"
CACHE = Path(__file__).parent.parent.parent / ".cache" / "autobahn"
INSTALL_LONGEST = 600.0

AGENT = "holdfast"
EVERYTHING = ("*",)
COMPRESSION = ("12.*", "13.*")  # which we do not offer


class Unavailable(Exception):
    """The suite cannot be had here; says what is missing."""


def command(mode: str, spec: Path) -> tuple[list[str], dict[str, str]]:
    """How to start the suite, and its environment; skips the test where there is none."""
    found = _found_once()
    if isinstance(found, Unavailable):
        pytest.skip(f"the Autobahn test suite is missing: {found}")
    start = "from autobahntestsuite.wstest import run; run()"
    environment = {"PYTHONPATH": str(CACHE / "py2"), "PATH": os.defpath}
    return [str(found), "-c", start, "-m", mode, "-s", str(spec)], environment


def verdicts(reports: Path) -> dict[str, tuple[str, str]]:
    """What the suite said of each case: of what was done, and of how it was ended."""
    index = json.loads((reports / "index.json").read_text())[AGENT]
    return {case: (said["behavior"], said["behaviorClose"]) for case, said in index.items()}


def write_spec(path: Path, cases: Sequence[str], **more: object) -> Path:
    """Tell the suite what to do, and where to put its reports."""
    spec = {
        "outdir": str(path.parent / "reports"),
        "cases": list(cases),
        "exclude-cases": list(COMPRESSION),
        "exclude-agent-cases": {},
    }
    path.write_text(json.dumps(spec | more))
    return path


@functools.cache
def _found_once() -> Path | Unavailable:
    try:
        return _install()
    except Unavailable as missing:
        return missing


def _install() -> Path:
    """The interpreter that runs the suite, which is installed now if it was not."""
    python = _python2()
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = CACHE / "py2" / PACKAGE
        if not done.exists():
            _pip(python, CACHE / "py2")
            (CACHE / "py2" / "zope" / "__init__.py").touch()  # a namespace, outside site-packages
            done.touch()
    return python


def _python2() -> Path:
    """The first that runs: a name on the path may be a signpost that leads nowhere."""
    named = shutil.which("python2.7")
    versions = (Path.home() / ".pyenv" / "versions").glob("2.7*/bin/python2.7")
    for found in (*versions, *([Path(named)] if named else [])):
        if subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0:
            return found
    raise Unavailable("it needs python2.7")


def _pip(python: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    argv = [str(python), "-m", "pip", "install", "--quiet", "--target", str(target), PACKAGE]
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=INSTALL_LONGEST, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"pip install {PACKAGE}: {error}") from error
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:]
        raise Unavailable(f"pip install {PACKAGE}: {' '.join(last)}")
