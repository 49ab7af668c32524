"""The real Codex runs its turns on our exec-server, and never learns what happened to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from holdfast.codex import Thread
from holdfast.codex.wire.generated import CommandExecutionThreadItem, FileChangeThreadItem
from tests.exec.server.talking import Served, served
from tests.journeys.stage import Stage, linux_only, staged
from tests.parts.model_acts import Reply, Say, add_file, run
from tests.parts.model_server import ModelRequest

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90), linux_only]


@asynccontextmanager
async def on(
    server_url: str, place: Path, script: Iterable[Reply] | Callable[[ModelRequest], Reply]
) -> AsyncIterator[tuple[Stage, Thread]]:
    """A thread of the real Codex whose commands and files are on a server."""
    work = place / "work"
    work.mkdir()
    async with staged(place, script) as stage:
        env = {**stage.env, "CODEX_EXEC_SERVER_URL": server_url}
        async with replace(stage, env=env).connect() as codex:
            yield stage, await codex.start_thread(cwd=work)


def numbered(count: int, pause: float = 0.0) -> str:
    """A command that prints so many numbered lines."""
    wait = f"sleep {pause}; " if pause else ""
    return f"i=0; while [ $i -lt {count} ]; do echo line $i; {wait}i=$((i+1)); done; exit 5"


async def test_a_turn_runs_its_command_on_our_server(tmp_path: Path) -> None:
    script = [[run("echo out; echo err >&2; pwd; exit 3")], [Say("It failed.")]]
    async with served(tmp_path / "state") as server, on(server.url, tmp_path, script) as (_, it):
        answer = await it.ask("go")
        seen = server.state / "processes"
        kept = [path for path in seen.iterdir()]

    (item,) = (each for each in answer.items if isinstance(each, CommandExecutionThreadItem))
    assert (item.status, item.exit_code) == ("failed", 3)
    assert sorted((item.aggregated_output or "").split()) == sorted(
        ["out", "err", str(tmp_path / "work")]
    )
    assert kept


async def test_a_patch_goes_through_our_file_methods(tmp_path: Path) -> None:
    update = (
        "*** Begin Patch\n*** Update File: hello.txt\n@@\n-hello\n+goodbye\n world\n*** End Patch\n"
    )
    script = [
        [add_file("hello.txt", "hello\nworld")],
        [replace(add_file("x", "x", call_id="call_2"), text=update)],
        [Say("Written.")],
    ]
    async with served(tmp_path / "state") as server, on(server.url, tmp_path, script) as (_, it):
        answer = await it.ask("write it")

    changes = [item for item in answer.items if isinstance(item, FileChangeThreadItem)]
    assert [change.status for change in changes] == ["completed", "completed"]
    assert (tmp_path / "work" / "hello.txt").read_text() == "goodbye\nworld\n"


async def test_output_longer_than_a_screen_arrives_whole(tmp_path: Path) -> None:
    script = [[run(numbered(3000), max_output_tokens=100_000)], [Say("Long.")]]
    async with served(tmp_path / "state") as server, on(server.url, tmp_path, script) as (_, it):
        answer = await it.ask("go")

    (item,) = (each for each in answer.items if isinstance(each, CommandExecutionThreadItem))
    assert item.exit_code == 5
    assert item.aggregated_output == "".join(f"line {n}\n" for n in range(3000))


@pytest.mark.promise("X13")
async def test_a_server_killed_in_the_middle_of_a_command_is_not_noticed(tmp_path: Path) -> None:
    state = tmp_path / "state"
    script = [[run(numbered(60, 0.05), yield_time_ms=20_000)], [Say("Done.")]]
    socket = f"unix://{tmp_path}/exec.sock"
    async with served(state, leave=True) as first:
        port = first.url.rpartition(":")[2]
        async with on(first.url, tmp_path, script) as (stage, it):
            answers: list[object] = []

            async def ask() -> None:
                answers.append(await it.ask("go"))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await stage.model.requested(1)
                await _printing(first)
                await first.kill()
                async with served(state, listen=f"ws://127.0.0.1:{port}"):
                    with anyio.fail_after(60):
                        while not answers:
                            await anyio.sleep(0.05)
    del socket
    (item,) = (i for i in answers[0].items if isinstance(i, CommandExecutionThreadItem))  # type: ignore[attr-defined]
    assert item.exit_code == 5
    assert item.aggregated_output == "".join(f"line {n}\n" for n in range(60))


async def _printing(server: Served) -> None:
    """Wait until a process of the server has put something out."""
    with anyio.fail_after(20):
        while not any(
            path.stat().st_size for path in (server.state / "processes").glob("*/stdout")
        ) and not any(path.stat().st_size for path in (server.state / "processes").glob("*/pty")):
            await anyio.sleep(0.02)
