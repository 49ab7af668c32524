"""The real Codex in workspace-write: it asks us for its sandbox, and gets one that holds."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.codex import CompletedTurn, Thread
from holdfast.codex.wire.generated import CommandExecutionThreadItem, FileChangeThreadItem
from holdfast.confine import strength_within
from tests.exec.server.talking import served, until
from tests.journeys.stage import linux_only, staged
from tests.parts.model_acts import Patch, Say, add_file, run

pytestmark = [pytest.mark.anyio, linux_only]


@pytest.fixture
def base() -> Iterator[Path]:
    """Outside of all that a workspace may write."""
    if strength_within(()) != "full":
        pytest.skip("there is no full sandbox on this machine")
    with tempfile.TemporaryDirectory(dir="/var/lib", prefix="holdfast-test-") as made:
        yield Path(made).resolve()


@asynccontextmanager
async def confined(base: Path, *script: list[object], mode: str) -> AsyncIterator[Thread]:
    """A thread whose commands must ask our server for a sandbox of this mode."""
    work = base / "work"
    work.mkdir()
    (base / "outside").write_text("as it was")
    async with served(base / "state") as server:
        async with staged(base, script, sandbox_mode=mode) as stage:
            stage.env["CODEX_EXEC_SERVER_URL"] = server.url
            async with stage.connect() as codex:
                yield await codex.start_thread(cwd=work)
                await until(lambda: not list(work.glob(".*")))  # nothing stands in any more


def ran(answer: CompletedTurn) -> list[tuple[int | None, str]]:
    return [
        (item.exit_code, item.aggregated_output or "")
        for item in answer.items
        if isinstance(item, CommandExecutionThreadItem)
    ]


async def test_workspace_write_works_and_contains(base: Path) -> None:
    script = (
        "echo in >inside && cat ../outside && (echo x >../outside; mkdir .codex;"
        " mkdir -p .git/hooks; echo $?)"
    )
    async with confined(base, [run(script)], [Say("Done.")], mode="workspace-write") as thread:
        ((status, said),) = ran(await thread.ask("go"))

    assert (base / "work" / "inside").read_text() == "in\n"
    assert (base / "outside").read_text() == "as it was"
    assert said.startswith("as it was")
    assert status == 0
    assert said.count("Read-only file system") + said.count("File exists") >= 2


async def test_a_patch_is_applied_in_the_workspace_and_nowhere_else(base: Path) -> None:
    good = [add_file("hello.txt", "hello")]
    bad = [Patch("*** Begin Patch\n*** Add File: ../evil.txt\n+x\n*** End Patch\n", "call_2")]
    async with confined(base, good, bad, [Say("Done.")], mode="workspace-write") as thread:
        answer = await thread.ask("go")

    changes = [item for item in answer.items if isinstance(item, FileChangeThreadItem)]
    assert changes
    assert (base / "work" / "hello.txt").read_text() == "hello\n"
    assert not (base / "evil.txt").exists()


async def test_read_only_reads_and_writes_nothing(base: Path) -> None:
    script = "cat ../outside; (echo x >new) || echo refused"  # else Codex would tell no item
    async with confined(base, [run(script)], [Say("Done.")], mode="read-only") as thread:
        ((status, said),) = ran(await thread.ask("go"))

    assert status == 0
    assert said.startswith("as it was")
    assert "refused\n" in said  # before or after the complaint: those are two streams
    assert list((base / "work").iterdir()) == []
