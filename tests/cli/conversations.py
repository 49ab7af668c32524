"""Sessions with a scripted agent at the command line, and nobody of them left afterwards."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cli.planes import eventually
from tests.cli.running import COMMAND, environment
from tests.cli.workbenches import Bench, at_bench

Records = list[dict[str, Any]]  # Any: JSON


@contextmanager
def in_conversation() -> Generator[Bench]:
    """A bench whose hosts end with the test."""
    with at_bench() as bench:
        (bench.project / "a").write_text("one\n")
        try:
            yield bench
        finally:
            state = str(bench.settings.state)
            bench.ran("stop", "--all", "--state", state, "--yes")
            eventually(lambda: not hosts_of(bench))


def scripted(bench: Bench, *turns: str) -> str:
    """A scenario of these turns, each a list of steps in TOML, by its path."""
    path = bench.home / "scenario.toml"
    path.write_text("".join(f"[[turn]]\nstep = [{steps}]\n" for steps in turns))
    return str(path)


def asking(bench: Bench, *words: str, steps: str) -> subprocess.CompletedProcess[bytes]:
    """What comes of asking an agent that does only this."""
    return bench.ran("ask", "--scenario", scripted(bench, steps), *words)


def begun(bench: Bench, *words: str) -> subprocess.Popen[bytes]:
    """A command that is under way."""
    return subprocess.Popen(
        [*COMMAND, *words],
        env=environment(bench.home),
        cwd=bench.project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def lines(output: bytes) -> Records:
    """Every line of output, which is JSON."""
    return [json.loads(line) for line in output.splitlines()]


def sessions(bench: Bench) -> Records:
    """All sessions, the newest first."""
    return lines(bench.ran("sessions", "list", "--json").stdout)


def hosts_of(bench: Bench) -> list[int]:
    """The processes that host a session of this bench."""
    found: list[int] = []
    for each in Path("/proc").iterdir():
        try:
            words = (each / "cmdline").read_bytes().split(b"\0") if each.name.isdigit() else []
            where = (each / "cwd").readlink() if b"host" in words else None
        except OSError:
            continue
        if where == bench.project and b"holdfast.cli.main" in words:
            found.append(int(each.name))
    return found
