"""What a start in a sandbox costs: ours, that of Codex, and that of Claude Code's runtime.

All three are given the same command and the same directory to write, and are measured in turn. A
peer that cannot be had is named, and not measured.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parent.parent))

from holdfast.confine import ProcessEntry, SandboxPolicy, enter, prepare_sandbox
from holdfast.confine.failures import SandboxUnavailable
from tests.parts.codex_binary import CACHE, Unavailable, codex_home, install

RUNTIME = "@anthropic-ai/sandbox-runtime"
ROUNDS, MOST = 12, 25.0  # milliseconds
INSTALL_LONGEST = 300.0
COMMAND = ["/bin/true"]
PACKAGES = {"socat": "socat", "bwrap": "bubblewrap", "rg": "ripgrep"}  # what the runtime runs
Start = Callable[[], None]


def sandbox_rows() -> Iterator[dict[str, object]]:
    """A start in each sandbox, to its end."""
    with tempfile.TemporaryDirectory(prefix="bench-sandbox-", dir=CACHE.parent) as name:
        base = Path(name)
        workspace = base / "workspace"
        workspace.mkdir()
        subprocess.run(["git", "init", "-q", str(workspace)], check=True)
        starts: dict[str, Start] = {"no sandbox": _plain}
        for title, find in (
            ("our sandbox", lambda: _ours(workspace, base / "state")),
            ("codex sandbox", lambda: _codex(workspace, base)),
            (RUNTIME, lambda: _runtime(workspace, base)),
        ):
            try:
                starts[title] = find()
                starts[title]()  # warm, and known to work
            except (Unavailable, SandboxUnavailable, subprocess.CalledProcessError) as missing:
                starts.pop(title, None)
                yield {"what": f"{title} is missing: {missing}"}
        taken: dict[str, list[tuple[float, float]]] = {title: [] for title in starts}
        for _ in range(ROUNDS):
            for title, start in starts.items():
                taken[title].append(_measured(start))
    for title, figures in taken.items():
        wall, used = zip(*figures, strict=True)
        row: dict[str, object] = {"what": f"a start, {title}", "median ms": median(wall)}
        row |= {"least ms": min(wall), "CPU ms": median(used)}
        if title == "our sandbox":
            row |= {"aim ms": MOST, "met": median(wall) <= MOST}
        yield row


def _measured(start: Start) -> tuple[float, float]:
    """Milliseconds on the clock, and of the processor in what was started."""
    before, began = getrusage(RUSAGE_CHILDREN), perf_counter()
    start()
    took, after = perf_counter() - began, getrusage(RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return 1000 * took, 1000 * used


def _plain() -> None:
    os.waitpid(enter(ProcessEntry(COMMAND, {}, "/", COMMAND[0])), 0)


def _ours(workspace: Path, state: Path) -> Start:
    state.mkdir()
    policy = SandboxPolicy(writable=(str(workspace),))
    entry = ProcessEntry(COMMAND, {"PATH": "/usr/bin:/bin"}, str(workspace), COMMAND[0])

    def start() -> None:
        with prepare_sandbox(entry, policy, state=state) as shut:
            status = os.waitpid(enter(shut.entry), 0)[1]
        assert status == 0

    return start


def _codex(workspace: Path, base: Path) -> Start:
    env = codex_home(base, "http://127.0.0.1:9", sandbox_mode="workspace-write")
    command = [str(install()), "sandbox", "--", *COMMAND]
    return lambda: _run(command, workspace, env)


def _runtime(workspace: Path, base: Path) -> Start:
    prefix = CACHE.parent / "sandbox-runtime"
    program = prefix / "node_modules" / ".bin" / "srt"
    if not program.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise Unavailable("npm is not installed")
        quiet = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
        try:
            subprocess.run(
                [npm, "install", "--prefix", str(prefix), *quiet, RUNTIME],
                check=True,
                capture_output=True,
                timeout=INSTALL_LONGEST,
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"npm cannot install {RUNTIME} ({error})") from error
    _need(PACKAGES)
    env = {"PATH": "/usr/bin:/bin", "HOME": str(base)}
    return lambda: _run([str(program), *COMMAND], workspace, env)


def _need(packages: Mapping[str, str]) -> None:
    """Have these programs: as root on Debian they are installed, elsewhere they are named."""
    missing = [package for name, package in packages.items() if shutil.which(name) is None]
    if not missing:
        return
    if os.geteuid() or shutil.which("apt-get") is None:
        raise Unavailable(f"it needs {', '.join(missing)} (Debian: sudo apt install ...)")
    print(f"Installing {', '.join(missing)} for {RUNTIME} ...", file=sys.stderr)
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update"], ["install", "-y", "--no-install-recommends", *missing]):
        try:
            subprocess.run(
                ["apt-get", *words],
                env=quiet,
                check=True,
                capture_output=True,
                timeout=INSTALL_LONGEST,
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"apt-get cannot install {', '.join(missing)} ({error})") from error


def _run(command: list[str], workspace: Path, env: dict[str, str]) -> None:
    subprocess.run(command, cwd=workspace, env=env, check=True, capture_output=True, timeout=60)
