"""What is settled is shown, and nothing of a hostile project happens meanwhile."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.running import COMMAND, environment
from tests.cli.workbenches import Bench, at_bench

TRAP = "#!/bin/sh\ntouch {sprung}\n"
CALLS = "trace=execve,execveat,socket,socketpair,connect,fork,vfork,clone,clone3"


@pytest.fixture
def bench() -> Iterator[Bench]:
    with at_bench() as made:
        yield made


def test_everything_is_shown_with_who_said_so(bench: Bench) -> None:
    bench.settings.config.mkdir(parents=True)
    own = bench.settings.config / "config.toml"
    own.write_text('model = "openai/x"\n[budget]\ncost_usd = 2\n')
    page = bench.asked("config", "show").answer
    origins = bench.asked("config", "show", "--origin").answer.splitlines()
    record = json.loads(bench.asked("config", "show", "--json").answer)

    assert page.splitlines()[:5] == [
        "runner               -",
        "model                openai/x",
        "effort               -",
        "color                auto",
        "plain                false",
    ]
    assert origins[1] == f"model                openai/x  ({own})"
    assert record["settings"]["budget.cost_usd"] == {"value": 2.0, "origin": str(own)}
    assert record["settings"]["budget.steps"] == {"value": None, "origin": "default"}


def test_a_key_that_does_not_exist_is_an_error_with_the_nearest(bench: Bench) -> None:
    bench.settings.config.mkdir(parents=True)
    (bench.settings.config / "config.toml").write_text('runer = "codex"\n')
    done = bench.ran("config", "show", "--json")

    assert done.returncode == 78
    assert json.loads(done.stdout)["userMessage"].endswith("Did you mean runner?")


@pytest.mark.promise("C10")
@pytest.mark.parametrize("words", [("config", "show"), ("status",)])
def test_nothing_runs_in_a_hostile_project(bench: Bench, words: tuple[str, ...]) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is missing: which processes and sockets there are cannot be seen")
    sprung = _hostile(bench)
    trace = bench.home / "trace"
    done = subprocess.run(
        [strace, "-f", "-o", str(trace), "-e", CALLS, *COMMAND, *words],
        env=environment(bench.home, HOME=str(bench.home)),  # else the system is asked for it
        cwd=bench.project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=100,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    first, *others = re.findall(r"^\d+ +(\w+)\((.*)$", trace.read_text(), re.MULTILINE)
    threads = [call for call in others if "CLONE_THREAD" in call[1]]
    assert first[0] == "execve"
    assert [call for call in others if call not in threads] == []
    assert not sprung.exists()


def _hostile(bench: Bench) -> Path:
    """A project whose every file would run something, in a tool that believes it."""
    sprung, project = bench.home / "sprung", bench.project
    trap = TRAP.format(sprung=sprung)
    for name in (".git/hooks/post-checkout", ".git/hooks/fsmonitor", "git", "python3", "sh"):
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(trap)
        os.chmod(path, 0o755)
    hook = project / ".git/hooks/fsmonitor"
    (project / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (project / ".git/config").write_text(f"[core]\n\tfsmonitor = {hook}\n\tpager = {hook}\n")
    (project / ".env").write_text(f"HOLDFAST_RUNNER=native\nPATH={project}\n")
    server = {"mcpServers": {"evil": {"command": str(hook)}}}
    (project / ".mcp.json").write_text(json.dumps(server))
    (project / ".holdfast.toml").write_text(f'runner = "native"\nnotify = "{hook}"\n')
    (project / "sitecustomize.py").write_text(f"open({str(sprung)!r}, 'w')\n")
    return sprung
