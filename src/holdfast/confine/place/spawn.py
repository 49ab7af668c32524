"""Make a place from a process with threads: by a small interpreter that has one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from holdfast.confine.model import PlaceSpec, PlaceStep
from holdfast.confine.place.holder import PlaceStepRefused

_BOOT = """
import sys
sys.path.insert(0, sys.argv[1])
from holdfast.confine.place.holder import main
main()
"""


class HoldingApart:
    """A place that is whole, and whose holder waits for our word."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid: int = _heard(process)["pid"]

    def confirm(self) -> None:
        """Let it hold the place from now on, whatever becomes of us."""
        _say(self._process, {})
        _heard(self._process)


@contextmanager
def prepared_apart(spec: PlaceSpec, lock: int, mark: str) -> Generator[HoldingApart]:
    """A place that ends with this block unless it was confirmed; raises `Refused`."""
    ours = str(Path(__file__).resolve().parents[3])
    # -I -S: nothing of the user's and nothing that is installed; what it needs, it has.
    command = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _BOOT, ours]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        pass_fds=(lock,),
        cwd="/",
    ) as process:
        _say(process, {"spec": asdict(spec), "lock": lock, "mark": mark})
        yield HoldingApart(process)


def _say(process: subprocess.Popen[bytes], what: dict[str, object]) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(what).encode("ascii") + b"\n")
    except BrokenPipeError as error:
        raise PlaceStepRefused(PlaceStep.PROGRAM, 0) from error


def _heard(process: subprocess.Popen[bytes]) -> dict[str, Any]:  # Any: as json declares it
    assert process.stdout is not None
    said: dict[str, Any] = json.loads(
        process.stdout.readline() or '{"step": "program"}'
    )  # as above
    if "step" in said:
        raise PlaceStepRefused(PlaceStep(said["step"]), said.get("number", 0))
    return said
