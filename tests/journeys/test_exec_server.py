"""The real Codex runs its turns on our exec-server, and never learns what happened to it."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from holdfast.codex import CompletedTurn, Thread
from holdfast.codex.wire.generated import CommandExecutionThreadItem, FileChangeThreadItem
from tests.exec.server.talking import Served, introduced, served
from tests.journeys.stage import Stage, linux_only, staged
from tests.parts.chaos_proxy import ChaosProxy, chaos_proxy
from tests.parts.model_acts import Patch, Reply, Say, add_file, run
from tests.parts.model_server import ModelRequest

pytestmark = [pytest.mark.anyio, linux_only]

Script = Iterable[Reply] | Callable[[ModelRequest], Reply]


@asynccontextmanager
async def on(
    server_url: str, place: Path, script: Script, *, token: str | None = None
) -> AsyncIterator[tuple[Stage, Thread]]:
    """A thread of the real Codex whose commands and files are on a server."""
    work = place / "work"
    work.mkdir()
    async with staged(place, script) as stage:
        if token is None:
            stage.env["CODEX_EXEC_SERVER_URL"] = server_url
        else:
            home = Path(stage.env["CODEX_HOME"])
            (home / "environments.toml").write_text(
                f'default = "ours"\n[[environments]]\nid = "ours"\nurl = "{server_url}"\n'
                f'auth_bearer_token = "{token}"\n'
            )
        async with stage.connect() as codex:
            yield stage, await codex.start_thread(cwd=work)


def numbered(count: int, pause: float = 0.0) -> str:
    """A command that prints so many numbered lines."""
    wait = f"sleep {pause}; " if pause else ""
    return f"i=0; while [ $i -lt {count} ]; do echo line $i; {wait}i=$((i+1)); done; exit 5"


def lines(count: int) -> str:
    return "".join(f"line {number}\n" for number in range(count))


def ran(answer: CompletedTurn) -> tuple[int | None, str | None]:
    """The status and the output of the one command of a turn."""
    (item,) = (each for each in answer.items if isinstance(each, CommandExecutionThreadItem))
    return item.exit_code, item.aggregated_output


async def until(holds: Callable[[], bool], *, within: float = 60.0) -> None:
    with anyio.fail_after(within):
        while not holds():  # noqa: ASYNC110  # what is waited for has no event of its own
            await anyio.sleep(0.02)


def printed(state: Path) -> int:
    """How much the processes of a server have put out."""
    found = (state / "processes").glob("*/*")
    return sum(path.stat().st_size for path in found if path.name in {"stdout", "stderr", "pty"})


@dataclass
class Asked:
    """A turn on its way."""

    thread: Thread
    answers: list[CompletedTurn] = field(default_factory=list)

    async def run(self) -> None:
        self.answers.append(await self.thread.ask("go"))

    @property
    def is_done(self) -> bool:
        return bool(self.answers)


@asynccontextmanager
async def asking(thread: Thread) -> AsyncIterator[Asked]:
    """Run a turn beside the block, which may do harm meanwhile; ends when the turn does."""
    asked = Asked(thread)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asked.run)
        yield asked
        await until(lambda: asked.is_done, within=60)


async def test_a_turn_runs_its_command_on_our_server(tmp_path: Path) -> None:
    script = [[run("echo out; pwd; exit 3")], [Say("It failed.")]]
    state = tmp_path / "state"
    async with served(state) as server, on(server.url, tmp_path, script) as (_, thread):
        answer = await thread.ask("go")
        kept = printed(state)

    output = f"out\n{tmp_path / 'work'}\n"
    assert ran(answer) == (3, output)
    assert kept == len(output)


@pytest.mark.promise("X12")
async def test_codex_shows_the_token(tmp_path: Path) -> None:
    token = tmp_path / "token"
    script = [[run("echo hi")], [Say("Done.")]]
    async with served(tmp_path / "state", "--token-file", str(token)) as server:
        secret = token.read_text().strip()
        async with on(server.url, tmp_path, script, token=secret) as (_, thread):
            answer = await thread.ask("go")

    assert ran(answer) == (0, "hi\n")


async def test_a_patch_goes_through_our_file_methods(tmp_path: Path) -> None:
    update = "*** Update File: hello.txt\n@@\n-hello\n+goodbye\n world\n"
    script = [
        [add_file("hello.txt", "hello\nworld")],
        [Patch(f"*** Begin Patch\n{update}*** End Patch\n", "call_2")],
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

    assert ran(answer) == (5, lines(3000))


async def _cut(proxy: ChaosProxy, state: Path) -> None:
    for size in (40, 120, 200):
        await until(lambda size=size: printed(state) > size)  # type: ignore[misc]
        await proxy.cut()


async def _half_open(proxy: ChaosProxy, state: Path) -> None:
    await until(lambda: printed(state) > 40)
    await proxy.half_open()


async def _refuse_for_a_while(proxy: ChaosProxy, state: Path) -> None:
    await until(lambda: printed(state) > 40)
    proxy.refuses = True
    await proxy.cut()
    await anyio.sleep(1.5)
    proxy.refuses = False


@pytest.mark.parametrize("harm", [_cut, _half_open, _refuse_for_a_while])
@pytest.mark.promise("X9")
async def test_a_connection_that_breaks_is_not_noticed(
    tmp_path: Path, harm: Callable[[ChaosProxy, Path], Awaitable[None]]
) -> None:
    state = tmp_path / "state"
    script = [[run(numbered(60, 0.05), yield_time_ms=20_000)], [Say("Done.")]]
    async with chaos_proxy(0) as (proxy, url):
        async with served(state, "--name", url.removeprefix("ws://")) as server:
            proxy.port = int(server.url.rpartition(":")[2])
            async with on(url, tmp_path, script) as (_, thread), asking(thread) as asked:
                await harm(proxy, state)

    assert ran(asked.answers[0]) == (5, lines(60))
    assert proxy.dials >= 2


@pytest.mark.promise("X13")
async def test_a_server_killed_in_the_middle_of_a_command_is_not_noticed(tmp_path: Path) -> None:
    state = tmp_path / "state"
    script = [[run(numbered(60, 0.05), yield_time_ms=20_000)], [Say("Done.")]]
    async with served(state, leave=True) as first:
        async with on(first.url, tmp_path, script) as (_, thread), asking(thread) as asked:
            await until(lambda: printed(state) > 40)
            await first.kill()
            async with served(state, listen=first.url):
                await until(lambda: asked.is_done, within=60)

    assert ran(asked.answers[0]) == (5, lines(60))


@dataclass
class Seen:
    """All that a client has seen of its processes, over all connections and servers."""

    session: str | None = None
    last: dict[str, int] = field(default_factory=dict)
    output: dict[str, bytes] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)

    async def follow(self, server: Served, names: list[str], *, until_printed: int) -> None:
        """Catch up, then listen until enough has come or all is closed."""
        async with introduced(server.url, self.session) as talk:
            self.session = talk.session
            if not self.last:
                for name in names:
                    await talk.start(name, "sh", "-c", numbered(400, 0.01))
                    self.last[name], self.output[name] = 0, b""
            else:
                for name in names:
                    page = await talk.call("process/read", processId=name, afterSeq=self.last[name])
                    for chunk in page["chunks"]:
                        self.take(name, chunk["seq"], b64decode(chunk["chunk"]))
                    if page["closed"]:
                        self.closed.add(name)
                    self.last[name] = page["nextSeq"] - 1
            at = 0

            def enough() -> bool:
                nonlocal at
                for news in talk.news[at:]:
                    params = news["params"]
                    data = b64decode(params["chunk"]) if "chunk" in params else b""
                    self.take(params["processId"], params["seq"], data)
                    if news["method"] == "process/closed":
                        self.closed.add(params["processId"])
                at = len(talk.news)
                size = sum(map(len, self.output.values()))
                return size >= until_printed or self.closed == set(names)

            talk.patience = 60
            await talk.until(enough)

    def take(self, name: str, seq: int, data: bytes) -> None:
        """Take one event; each number comes once, and the one after the last."""
        assert seq == self.last[name] + 1 or not data, (name, seq, self.last[name])
        self.last[name] = seq
        self.output[name] += data


async def killed_again_and_again(state: Path, *, processes: int) -> Seen:
    names = [f"p{number}" for number in range(processes)]
    whole = len(lines(400)) * processes
    seen = Seen()
    for goal in range(1, 8):
        async with served(state, leave=True) as server:
            await seen.follow(server, names, until_printed=whole * goal // 8)
            await server.kill()
    async with served(state) as server:
        await seen.follow(server, names, until_printed=whole * 2)
    return seen


@pytest.mark.promise("X13")
async def test_kill_9_again_and_again_loses_no_line_and_repeats_none(tmp_path: Path) -> None:
    seen = await killed_again_and_again(tmp_path / "state", processes=10)

    assert seen.output == {f"p{number}": lines(400).encode() for number in range(10)}


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.promise("X13")
async def test_kill_9_again_and_again_with_fifty_processes(tmp_path: Path) -> None:
    for attempt in range(5):
        seen = await killed_again_and_again(tmp_path / str(attempt), processes=50)

        assert seen.output == {f"p{number}": lines(400).encode() for number in range(50)}


async def all_at_once(state: Path, count: int) -> None:
    expected = "".join(f"{number}\n" for number in range(1, 201)).encode()
    async with served(state) as server, introduced(server.url) as talk:
        talk.patience = 240
        command = {"argv": ["sh", "-c", "seq 1 200; read x"], "cwd": "file:///tmp", "tty": False}
        more = {**command, "env": {"PATH": "/usr/bin:/bin"}, "pipeStdin": True}
        asked = [
            await talk.ask("process/start", {"processId": f"p{number}", **more})
            for number in range(count)
        ]
        for number in asked:
            await talk.answer(number)
        listed = (await talk.call("process/list"))["processes"]
        assert [process["exited"] for process in listed] == [False] * count
        for number in range(count):
            await talk.ask("process/closeStdin", {"processId": f"p{number}"})
        for number in range(count):
            await talk.closed(f"p{number}")
            assert talk.output(f"p{number}") == expected
        assert server.rss_mb < 150


async def test_two_hundred_processes_at_once(tmp_path: Path) -> None:
    await all_at_once(tmp_path / "state", 200)


@pytest.mark.long
async def test_two_thousand_processes_at_once(tmp_path: Path) -> None:
    await all_at_once(tmp_path / "state", 2000)
