"""Our client drives the real exec-server of Codex, through a network that is out to harm it."""

from __future__ import annotations

import random
import shlex
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import pytest

from holdfast.exec.client.client import Client
from holdfast.exec.client.process import Process
from holdfast.exec.client.recovery import RecoveryPolicy
from holdfast.exec.client.transport import ProcessTransport
from holdfast.exec.failures import (
    CapabilityMissing,
    FileMissing,
    HttpFailed,
    HttpOverrun,
    OutcomeUnknown,
    ProcessExists,
    RecoveryTimedOut,
    ReplayGap,
    SessionExpired,
    StartFailed,
    StdinClosed,
)
from holdfast.exec.model import ClientState, Closed, Command, Event, Exited, Fetch, Output
from holdfast.exec.server.model import WalkOptions
from holdfast.failures import Failure
from holdfast.rpc.transports.websocket import connect_websocket
from tests.exec.client.test_http import DATA, LARGE, PLAIN, endless, site
from tests.exec.server.talking import until
from tests.parts.chaos_proxy import ChaosProxy, chaos_proxy
from tests.parts.codex_binary import codex_binary

pytestmark = pytest.mark.anyio

POLICY = RecoveryPolicy(window=60.0, wait_first=0.05, wait_longest=0.5, settled=0.05)
ENV = {"PATH": "/usr/bin:/bin"}


@contextmanager
def exec_server(home: Path) -> Iterator[int]:
    """The real server; yields its port."""
    with subprocess.Popen(
        [codex_binary(), "exec-server", "--listen", "ws://127.0.0.1:0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**ENV, "HOME": str(home), "CODEX_HOME": str(home), "TMPDIR": str(home)},
    ) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline().rpartition(b":")[2])
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def server_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with exec_server(tmp_path_factory.mktemp("codex")) as port:
        yield port


@asynccontextmanager
async def connected(
    port: int, policy: RecoveryPolicy = POLICY
) -> AsyncGenerator[tuple[Client, ChaosProxy]]:
    async with chaos_proxy(port) as (proxy, url):
        async with Client(lambda: connect_websocket(url), policy=policy) as client:
            yield client, proxy


def shell(script: str, *, has_stdin: bool = False, tty: bool = False) -> Command:
    return Command(("/bin/sh", "-c", script), cwd="/", env=ENV, has_stdin=has_stdin, tty=tty)


def is_alive(pid: Path) -> bool:
    """Whether the process lives that wrote its number there."""
    return pid.exists() and Path("/proc", pid.read_text().strip(), "exe").exists()


async def followed(process: Process) -> list[Event]:
    return [event async for event in process.events()]


def said(events: list[Event], stream: str = "stdout") -> bytes:
    return b"".join(e.data for e in events if isinstance(e, Output) and e.stream == stream)


def status(events: list[Event]) -> list[int]:
    return [e.status for e in events if isinstance(e, Exited)]


async def test_output_and_status_are_exact(server_port: int) -> None:
    async with connected(server_port) as (client, _):
        process = await client.start(shell("printf 'a\\0\\377b'; printf err >&2; exit 5"))
        events = await followed(process)

        assert said(events) == b"a\0\xffb"
        assert said(events, "stderr") == b"err"
        assert (status(events), await process.wait(), process.status) == ([5], 5, 5)
        assert isinstance(events[-1], Closed)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))


async def test_input_is_written_in_order_and_a_terminal_is_one(server_port: int) -> None:
    async with connected(server_port) as (client, _):
        process = await client.start(shell("head -n 100", has_stdin=True))
        async with anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(process.write, b"%d\n" % number)
        assert sorted(said(await followed(process)).split()) == sorted(
            b"%d" % number for number in range(100)
        )

        terminal = await client.start(
            shell("tty >/dev/null && echo yes; read x; echo $x", tty=True)
        )
        await terminal.write(b"hello\n")
        text = said(await followed(terminal), "pty")
        assert b"yes" in text
        assert text.endswith(b"hello\r\n")


async def test_a_process_can_be_interrupted_and_terminated(server_port: int) -> None:
    async with connected(server_port) as (client, _):
        process = await client.start(shell("echo up; exec sleep 60"))
        assert said(await process.receive()) == b"up\n"
        await process.signal()
        assert await process.wait() == 130

        process = await client.start(shell("sleep 60"))
        assert await process.terminate()
        assert await process.wait() == 137
        assert not await process.terminate()


async def test_what_cannot_be_is_refused_by_name(server_port: int) -> None:
    async with connected(server_port) as (client, _):
        with pytest.raises(StartFailed):
            await client.start(Command(("/does/not/exist",), cwd="/", env=ENV))
        process = await client.start(shell("sleep 60"), process_id="one")
        with pytest.raises(ProcessExists):
            await client.start(shell("true"), process_id="one")
        for refused in (process.close_stdin, lambda: process.resize(rows=1, cols=1)):
            with pytest.raises(CapabilityMissing):
                await refused()
        with pytest.raises(CapabilityMissing):
            await client.processes()
        with pytest.raises(StdinClosed):
            await process.write(b"x")
        await process.terminate()


async def test_files_can_be_read_written_and_walked(server_port: int, tmp_path: Path) -> None:
    async with connected(server_port) as (client, _):
        files, directory = client.files, tmp_path / "ä b"
        await files.create_directory(directory)
        await files.write(directory / "f", b"\0\xff" * 1000)
        await files.copy(directory / "f", directory / "g")

        assert await files.read(directory / "g") == b"\0\xff" * 1000
        assert (await files.metadata(directory / "g")).size == 2000
        assert sorted(entry.file_name for entry in await files.entries(directory)) == ["f", "g"]
        assert await files.canonical(directory / "f") == str(directory / "f")
        options = WalkOptions(4, 100, 100, follow_directory_symlinks=False)
        assert len((await files.walk(directory, options)).entries) == 2
        await files.remove(directory / "g")
        with pytest.raises(FileMissing):
            await files.read(directory / "g")


@pytest.mark.promise("X1", "X2", "X3", "X4")
async def test_cuts_lose_and_repeat_nothing(server_port: int) -> None:
    chance = random.Random(7)
    async with connected(server_port) as (client, proxy):
        script = "i=0; while [ $i -lt 300 ]; do echo line $i; i=$((i+1)); sleep 0.01; done; exit 3"
        process = await client.start(shell(script))
        async with anyio.create_task_group() as tasks:

            async def harm() -> None:
                while True:
                    proxy.cut_after["down"] = chance.randrange(300, 20_000)
                    await anyio.sleep(chance.uniform(0.0, 0.3))
                    if chance.random() < 0.3:
                        await proxy.cut()
                    proxy.refuses = chance.random() < 0.2
                    proxy.delay = chance.choice([0.0, 0.0, 0.01])

            tasks.start_soon(harm)
            events = await followed(process)
            tasks.cancel_scope.cancel()

        assert said(events) == b"".join(b"line %d\n" % number for number in range(300))
        assert status(events) == [3]
        assert proxy.dials > 5


@pytest.mark.promise("X3", "X4")
@pytest.mark.parametrize("script", ["echo 1; exit 4", "(sleep 0.3; echo 1) & exit 4"])
async def test_what_ends_during_an_outage_is_told_in_its_place(
    server_port: int, tmp_path: Path, script: str
) -> None:
    async with connected(server_port) as (client, proxy):
        now = tmp_path / "now"
        process = await client.start(shell(f"until [ -e {now} ]; do sleep 0.05; done; {script}"))
        proxy.refuses = True
        await proxy.cut()
        now.touch()
        await anyio.sleep(1.0)  # the outage itself
        proxy.refuses = False
        events = await followed(process)

        assert (said(events), status(events)) == (b"1\n", [4])
        assert isinstance(events[-1], Closed)


@pytest.mark.promise("X7")
async def test_a_write_whose_answer_was_lost_is_written_once(server_port: int) -> None:
    async with connected(server_port) as (client, proxy):
        process = await client.start(shell("head -n 2", has_stdin=True))
        proxy.withholds = lambda frame: b'"accepted"' in frame
        await process.write(b"one\n")
        await process.write(b"two\n")

        assert said(await followed(process)) == b"one\ntwo\n"
        assert proxy.dials == 2


@pytest.mark.promise("X6")
async def test_a_start_whose_answer_was_lost_is_cleaned_up(
    server_port: int, tmp_path: Path
) -> None:
    async with connected(server_port) as (client, proxy):
        pid = tmp_path / "pid"
        proxy.withholds = lambda frame: b'"sandboxType"' in frame
        with pytest.raises(OutcomeUnknown):
            await client.start(shell(f"echo $$ > {shlex.quote(str(pid))}; exec sleep 60"))

        with anyio.fail_after(60):
            while is_alive(pid):  # noqa: ASYNC110  # the kernel sets no event of ours
                await anyio.sleep(0.02)


@pytest.mark.promise("X6")
async def test_a_start_whose_answer_was_lost_is_continued_on_request(server_port: int) -> None:
    async with connected(server_port) as (client, proxy):
        proxy.withholds = lambda frame: b'"sandboxType"' in frame
        process = await client.start(shell("echo here; exit 6"), continue_if_started=True)
        events = await followed(process)

        assert process.was_continued
        assert (said(events), status(events)) == (b"here\n", [6])


@pytest.mark.promise("X7")
async def test_a_file_write_whose_answer_was_lost_is_read_back(
    server_port: int, tmp_path: Path
) -> None:
    async with connected(server_port) as (client, proxy):
        proxy.withholds = lambda frame: b'"result":{}' in frame
        await client.files.write(tmp_path / "f", b"content")

        assert (tmp_path / "f").read_bytes() == b"content"
        proxy.withholds = lambda frame: b'"result":{}' in frame
        with pytest.raises(OutcomeUnknown):
            await client.files.create_directory(tmp_path / "d")


@pytest.mark.promise("X5")
async def test_a_gap_fails_only_the_process_that_has_it(server_port: int, tmp_path: Path) -> None:
    now, done = tmp_path / "now", tmp_path / "done"
    wait = f"until [ -e {now} ]; do sleep 0.05; done"
    async with connected(server_port) as (client, proxy):
        loud = await client.start(
            shell(f"{wait}; head -c 3000000 /dev/zero; touch {done}; sleep 60")
        )
        soft = await client.start(shell(f"{wait}; echo soft; read x; echo $x", has_stdin=True))
        proxy.refuses = True
        await proxy.cut()
        now.touch()
        await until(done.exists, within=60)  # more than the server retains
        proxy.refuses = False

        with pytest.raises(ReplayGap):
            await followed(loud)
        await soft.write(b"still\n")
        assert said(await followed(soft)) == b"soft\nstill\n"
        assert client.state is ClientState.CONNECTED


@pytest.mark.promise("X3")
async def test_a_session_that_is_still_attached_is_waited_for(server_port: int) -> None:
    async with connected(server_port) as (client, proxy):
        process = await client.start(shell("sleep 1; echo done"))
        await proxy.half_open()
        await anyio.sleep(0.5)  # refused with -32010 meanwhile
        assert client.state is ClientState.RECOVERING
        await proxy.cut()  # now the server notices too

        assert said(await followed(process)) == b"done\n"


async def failures_of_all(client: Client, process: Process) -> list[Failure]:
    """What those get who wait for a process, a call and a file."""
    got: list[Failure] = []

    async def wait_for(call: Callable[[], Awaitable[object]]) -> None:
        with pytest.raises(Failure) as raised:
            await call()
        got.append(raised.value)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait_for, process.wait)
        tasks.start_soon(wait_for, process.terminate)
        tasks.start_soon(wait_for, lambda: client.files.read("/etc/hostname"))
    return got


async def until_cut(client: Client, proxy: ChaosProxy) -> None:
    await proxy.cut()
    while client.state is ClientState.CONNECTED:  # noqa: ASYNC110  # the state sets no event
        await anyio.sleep(0.001)


@pytest.mark.long
@pytest.mark.promise("X3")
async def test_a_black_hole_is_noticed(server_port: int) -> None:
    async with connected(server_port) as (client, proxy):
        process = await client.start(shell("read x; echo $x", has_stdin=True))
        proxy.swallow()
        with anyio.fail_after(30):
            while client.state is ClientState.CONNECTED:  # noqa: ASYNC110  # the state sets no event
                await anyio.sleep(0.01)
        await proxy.cut()  # this server takes nobody's session over
        await process.write(b"back\n")

        assert said(await followed(process)) == b"back\n"


@pytest.mark.promise("X8")
async def test_a_server_that_does_not_know_the_session_fails_all_with_one_failure(
    server_port: int, tmp_path: Path
) -> None:
    with exec_server(tmp_path) as other_port:
        async with connected(server_port) as (client, proxy):
            process = await client.start(shell("sleep 60"))
            proxy.port = other_port
            await until_cut(client, proxy)

            gone = SessionExpired(session=client.session_id or "")
            assert await failures_of_all(client, process) == [gone] * 3
            assert client.failure == gone


@pytest.mark.promise("X8")
async def test_a_server_that_does_not_come_back_fails_all_with_one_failure(
    server_port: int,
) -> None:
    policy = RecoveryPolicy(window=1.0, wait_first=0.1, wait_longest=0.2)
    async with connected(server_port, policy) as (client, proxy):
        process = await client.start(shell("sleep 60"))
        proxy.refuses = True
        await until_cut(client, proxy)

        failures = await failures_of_all(client, process)

        assert failures == [client.failure] * 3
        assert isinstance(client.failure, RecoveryTimedOut)


@pytest.mark.promise("X10")
async def test_a_conversation_over_a_process_does_not_notice_cuts(server_port: int) -> None:
    async with connected(server_port) as (client, proxy):
        echo = "import sys\nfor line in sys.stdin: print(line.strip(), flush=True)"
        command = Command(("python3", "-c", echo), cwd="/", env=ENV, has_stdin=True)
        transport = ProcessTransport(await client.start(command), grace=1.0)
        for number in range(20):
            if number % 3 == 0:
                await proxy.cut()
            await transport.send([b'{"n":%d}' % number])
            assert await transport.receive() == [b'{"n":%d}' % number]
        await transport.aclose()


async def test_web_requests_are_made_whole_and_streamed(server_port: int) -> None:
    async with site({"/": PLAIN, "/large": LARGE}) as web, connected(server_port) as (client, _):
        found = await client.http.request(Fetch(f"{web.url}/"))
        assert (found.status, found.body) == (200, b"hello")
        with pytest.raises(HttpFailed):
            await client.http.request(Fetch("http://127.0.0.1:1/"))
        async with client.http.stream(Fetch(f"{web.url}/large")) as answer:
            assert answer.status == 200
            assert b"".join([data async for data in answer]) == DATA


@pytest.mark.promise("X2", "X11")
async def test_a_streamed_body_ends_with_its_connection_and_is_bounded(server_port: int) -> None:
    async with endless() as web, connected(server_port) as (client, proxy):
        async with client.http.stream(Fetch(f"{web.url}/silent")) as answer:
            await proxy.cut()
            with anyio.fail_after(10.0), pytest.raises(HttpFailed):
                async for _ in answer:
                    pass
        async with client.http.stream(Fetch(f"{web.url}/endless")) as answer:
            # Nobody reads, and this server cannot be told to wait.
            await until(lambda: web.sent > 64 * 2**20, within=60)
            with pytest.raises(HttpOverrun):
                async for _ in answer:
                    pass
