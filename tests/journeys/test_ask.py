"""From a question to a published answer, while what it stands on is killed; and back again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.commands.running_parts import belongings
from holdfast.cli.render.stop import Sort
from tests.cli.conversations import begun, in_conversation, lines, scripted
from tests.cli.pretending import turning
from tests.cli.running import COMMAND, environment
from tests.cli.workbenches import Bench

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


@pytest.mark.promise("X13")
def test_a_turn_outlives_its_server_and_its_work_is_published_and_undone(bench: Bench) -> None:
    turn = '{say = "Hello"}, {wait = 3}, {write = "b", content = "two"}, {say = "Done."}'
    asked = begun(bench, "ask", "--json", "--scenario", scripted(bench, turn), "Write b")
    assert asked.stdout is not None
    while b'"Hello"' not in asked.stdout.readline():
        assert asked.poll() is None
    servers = [each for each in belongings(bench.settings.state) if each.sort is Sort.SERVER]
    for each in servers:
        os.kill(each.pid, signal.SIGKILL)
    out, err = asked.communicate(timeout=120)
    result = json.loads(out.splitlines()[-1])

    assert servers
    assert (asked.returncode, result["status"], result["text"]) == (0, "completed", "Done."), err
    sequence = [each["seq"] for each in lines(out)[:-1]]
    assert sequence == sorted(set(sequence))
    assert bench.files() == {"a": "one\n"}
    assert bench.ran("publish", "--yes").returncode == 0
    assert bench.files() == {"a": "one\n", "b": "two"}
    oldest = lines(bench.ran("checkpoint", "list", "--json").stdout)[-1]
    assert bench.ran("restore", oldest["id"], "--yes").returncode == 0
    assert bench.files() == {"a": "one\n"}


@pytest.mark.promise("W12")
def test_codex_is_launched_only_once_somebody_agreed(bench: Bench, tmp_path: Path) -> None:
    codex = turning(tmp_path, {"begin": None}, {"end": "completed"})

    def ask(*words: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*COMMAND, "ask", "--json", *words, "Hello"],
            env=environment(bench.home, HOLDFAST_CODEX=str(codex)),
            cwd=bench.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=False,
        )

    refused = ask("--runner", "codex")
    launched = sorted(path.name for path in tmp_path.iterdir())
    agreed = ask("--runner", "codex", "--consent")
    again = ask("--runner", "codex")

    assert refused.returncode == 3
    assert lines(refused.stdout)[-1]["error"]["code"] == "EGRESS_CONSENT_REQUIRED"
    for done in (agreed, again):
        result = lines(done.stdout)[-1]
        assert (done.returncode, result["status"]) == (0, "completed"), done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) != launched
