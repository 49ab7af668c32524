"""Run a probe as the doctor does: in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def run_probe(module: str, name: str, directory: Path | str = "") -> dict[str, dict[str, object]]:
    """What the probe printed."""
    command = [sys.executable, "-m", f"holdfast.app.probes.{module}", name, str(directory)]
    done = subprocess.run(command, capture_output=True, check=True, cwd="/", timeout=30)
    answer: dict[str, dict[str, object]] = json.loads(done.stdout)
    return answer
