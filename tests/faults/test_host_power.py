"""The power fails as soon as a turn is said to be done: side by side with plain Codex."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from holdfast.app.sessions import Sessions
from holdfast.app.settings import parse
from holdfast.cli.render.turns import record_of
from tests.cli.running import COMMAND, environment
from tests.faults.host_disk import Disk, disk_at
from tests.faults.host_stand import end_all
from tests.faults.mounts import missing_for_mounts
from tests.journeys.stage import linux_only
from tests.parts.codex_binary import codex_binary, codex_home
from tests.parts.model_acts import Reply, Say, run
from tests.parts.model_server import ModelRequest, ModelServer

MISSING = missing_for_mounts()
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(300),
    linux_only,
    pytest.mark.skipif(MISSING is not None, reason=f"no power can be cut: {MISSING}"),
]

Record = dict[str, Any]  # Any: JSON
DISK_BYTES = 96 << 20
LINE_BYTES_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class Machine:
    """A disk with a project and a home of Codex on it."""

    home: Path
    disk: Disk
    environment: dict[str, str]

    @property
    def project(self) -> Path:
        return self.home / "project"

    async def run_until(self, kind: str, *words: str) -> list[Record]:
        """Run a command until it prints a record of this type, and lose the power at once."""
        printed: list[Record] = []
        async with await anyio.open_process(
            words, cwd=self.project, env=self.environment, stdin=subprocess.DEVNULL
        ) as process:
            assert process.stdout is not None
            lines = BufferedByteReceiveStream(process.stdout)
            while not printed or printed[-1]["type"] != kind:
                line = await lines.receive_until(b"\n", LINE_BYTES_MAX)
                printed.append(json.loads(line))
            process.kill()
            self.lose_power()
        return printed

    async def ran(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        return await anyio.run_process(
            words, cwd=self.project, env=self.environment, check=False, stdin=subprocess.DEVNULL
        )

    def lose_power(self) -> None:
        self.disk.lose_power()
        end_all(self.home)
        self.disk.start_again()


@contextmanager
def machine(url: str) -> Iterator[Machine]:
    """One machine, and nothing of it left."""
    home = Path(tempfile.mkdtemp(prefix="hf-", dir="/var/tmp"))
    with ExitStack() as undone:
        undone.callback(shutil.rmtree, home, ignore_errors=True)
        disk = undone.enter_context(disk_at(home, size_bytes=DISK_BYTES))
        undone.callback(end_all, home)
        found = codex_home(home / "c", url) | {"HOLDFAST_CODEX": str(codex_binary())}
        (home / "project").mkdir()
        (home / "project" / "readme.txt").write_text("A project.\n")
        subprocess.run(["sync", "--file-system", home], check=True)
        yield Machine(home, disk, environment(home, **found))


def reply(request: ModelRequest) -> Reply:
    done = request.tool_outputs
    if "again" in request.texts:
        return [Say("I remember: " + ", ".join(text for text in request.texts if text == "go"))]
    return [Say("Done.")] if "one" in done else [run("echo one > one.txt", call_id="one")]


def records(ours: Machine) -> list[Record]:
    """All that is written down of the newest session, as `ask` prints it."""
    sessions = Sessions(parse(ours.environment, person=ours.home))
    return [record_of(*each) for each in sessions.records(sessions.find(None))]


async def is_forgotten(url: str) -> bool:
    """Whether plain Codex has lost a session right after it said that its turn was completed."""
    with machine(url) as theirs:
        codex = (str(codex_binary()), "exec", "--json", "--skip-git-repo-check")
        told = await theirs.run_until("turn.completed", *codex, "go")
        resumed = await theirs.ran(*codex, "resume", told[0]["thread_id"], "again")
    return resumed.returncode != 0


@pytest.mark.promise("A3", "A6")
async def test_plain_codex_forgets_what_it_said_was_done_and_we_do_not() -> None:
    async with ModelServer(reply) as model:
        # The kernel writes everything down by itself after half a minute: a slow machine may.
        tries = 1
        while tries <= 3 and not await is_forgotten(model.url):
            tries += 1
        with machine(model.url) as ours:
            ask = (*COMMAND, "ask", "--json")
            said = await ours.run_until("result", *ask, "--runner", "codex", "--consent", "go")
            kept = records(ours)
            again = await ours.ran(*ask, "--session", said[-1]["session"], "again")
            published = await ours.ran(*COMMAND, "publish", "--yes", "--draft", said[-1]["draft"])
            file = (ours.project / "one.txt").read_text()
    result = json.loads(again.stdout.splitlines()[-1])

    assert tries <= 3
    assert [each for each in said[:-1] if each not in kept] == []
    assert (result["status"], result["text"]) == ("completed", "I remember: go"), again
    assert (published.returncode, file) == (0, "one\n"), published
