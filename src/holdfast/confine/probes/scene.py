"""Set the scene for the probes: something outside, a workspace, and a process beside them."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from holdfast.confine.probes import neighbour
from holdfast.confine.probes.attempts import Scene

CANARY_NAME = "PROBE_API_KEY"


@contextmanager
def staged(directory: Path, *, workspace: Path | None = None) -> Generator[Scene]:
    """A scene in an empty directory; its process ends with the scene."""
    workspace, outside = workspace or directory / "workspace", directory / "outside"
    outside.mkdir(mode=0o700)
    for name in ("target", "secret"):
        (outside / name).write_text(name)
    (outside / "target").chmod(0o600)
    (workspace / ".git" / "hooks").mkdir(parents=True)
    (workspace / ".git" / "config").touch()
    (workspace / ".git" / "hooks" / "pre-commit").touch()
    (workspace / "link").symlink_to(outside / "target")
    canary = f"canary-{secrets.token_hex(8)}"
    command = [sys.executable, "-I", neighbour.__file__, str(outside), canary]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={CANARY_NAME: canary},
    )
    with process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        yield Scene(workspace=str(workspace), outside=str(outside), canary=canary, **told)
