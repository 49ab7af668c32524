"""The environments of others, with whom we are compared: first of all the official SDK."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PLACE = HERE.parent / ".cache" / "bench-venv"


def python() -> Path:
    """An interpreter with the official SDK."""
    return installed(PLACE, HERE / "peers" / "requirements.lock")


def installed(place: Path, lock: Path) -> Path:
    """An interpreter of an environment that is set up once from a lock file."""
    interpreter, stamp = place / "bin" / "python", place / "installed"
    if not stamp.exists() or stamp.read_text() != lock.read_text():
        uv = [sys.executable, "-m", "uv"]
        subprocess.run([*uv, "venv", "-q", "--clear", str(place)], check=True)
        install = [*uv, "pip", "install", "-q", "--no-deps", "--require-hashes", "-r", str(lock)]
        subprocess.run([*install, "--python", str(interpreter)], check=True)
        stamp.write_text(lock.read_text())
    return interpreter


def worker(mode: str, **config: Any) -> list[str]:  # Any: what the SDK's configuration takes
    """The command of a worker that measures the official SDK, `sync` or `async`."""
    return [str(python()), "-m", "peers.official", mode, json.dumps(config)]
