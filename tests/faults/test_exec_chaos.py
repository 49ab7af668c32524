"""Whatever a network or a kill -9 does to processes on a server, no line is lost or repeated."""

from __future__ import annotations

import random
from base64 import b64decode
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path

import anyio
import msgspec
import pytest

from holdfast.exec import Client, Process, RecoveryPolicy
from holdfast.exec.failures import OutcomeUnknown, ReplayGap
from holdfast.exec.model import ClientState, Command, Exited, Output
from holdfast.rpc import Transport, connect_websocket
from tests.exec.server.talking import Json, Served, end_keeper, served, until
from tests.journeys.stage import linux_only
from tests.journeys.test_exec_codex_server import exec_server
from tests.journeys.test_exec_server import asking, lines, numbered, on, ran
from tests.parts.chaos_proxy import ChaosProxy, chaos_proxy
from tests.parts.model_acts import Say, run

pytestmark = [pytest.mark.anyio, linux_only]

POLICY = RecoveryPolicy(window=60.0, wait_first=0.01, wait_longest=0.2, settled=0.01)
# Servers that are killed as soon as they are there: a slow machine must not be called a lost one.
PATIENT = RecoveryPolicy(window=120.0, wait_first=0.01, wait_longest=0.1, settled=0.01)
ENV = {"PATH": "/usr/bin:/bin"}
RSS_MB_MAX = 150
EVERY_SERVER = pytest.mark.parametrize("server", ["ours", "codex"])
# It waits without forking: fifty of them must leave the machine to those they test.
PRINTER = (
    "exec 3<><(:); for ((n = 0; n < {count}; n++)); do echo line $n; read -t {pause} -u 3; done; "
    "exit 0"
)


@asynccontextmanager
async def behind(server: str, place: Path) -> AsyncGenerator[tuple[ChaosProxy, str]]:
    """One of the servers, behind a proxy that can do harm, and the URL of the proxy."""
    async with chaos_proxy(0) as (proxy, url):
        if server == "codex":
            with exec_server(place) as proxy.port:
                yield proxy, url
        else:
            async with served(place / "state", "--name", url.removeprefix("ws://")) as ours:
                proxy.port = int(ours.url.rpartition(":")[2])
                yield proxy, url


@asynccontextmanager
async def client_of(url: str, policy: RecoveryPolicy = POLICY) -> AsyncGenerator[Client]:
    async with Client(lambda: connect_websocket(url), policy=policy) as client:
        yield client


def shell(script: str, *, has_stdin: bool = False) -> Command:
    return Command(("/bin/bash", "-c", script), cwd="/", env=ENV, has_stdin=has_stdin)


def printer(count: int, pause: float) -> Command:
    """A process that says so many numbered lines, with pauses."""
    return shell(PRINTER.format(count=count, pause=pause))


async def heard(process: Process) -> tuple[str, int | None]:
    """All that a process says, and how it ends; its events are numbered without a hole."""
    said, status, seq = b"", None, 0
    async for event in process.events():
        seq += 1
        assert event.seq == seq
        if isinstance(event, Output):
            said += event.data
        elif isinstance(event, Exited):
            status = event.status
    return said.decode(), status


async def conversation(url: str) -> None:
    """Start a process, tell it something, hear it out; a cut anywhere in it changes nothing."""
    script = "for i in 0 1 2; do echo line $i; done; read x; echo got $x; exit 7"
    async with client_of(url) as client:
        command = shell(script, has_stdin=True)
        try:
            process = await client.start(command, continue_if_started=True)
        except OutcomeUnknown:  # it was looked up, and is not there: it may be started anew
            process = await client.start(command)
        await process.write(b"word\n")
        assert await heard(process) == (lines(3) + "got word\n", 7)


async def cut_at(proxy: ChaosProxy, url: str, way: str, offsets: list[int]) -> None:
    for offset in offsets:
        proxy.cut_after[way] = offset
        with anyio.fail_after(60):
            await conversation(url)
        proxy.cut_after[way] = float("inf")


async def offsets_of(proxy: ChaosProxy, url: str, way: str) -> range:
    """Where a conversation can be cut, its very first handshake included."""
    await conversation(url)
    return range(1, proxy.links[-1].carried[way])


@pytest.mark.promise("X1", "X3", "X4", "X6", "X7")
@EVERY_SERVER
@pytest.mark.parametrize("way", ["up", "down"])
async def test_a_conversation_cut_at_some_offset_goes_on(
    tmp_path: Path, server: str, way: str
) -> None:
    async with behind(server, tmp_path) as (proxy, url):
        chosen = random.Random(3).sample(await offsets_of(proxy, url, way), 25)
        await cut_at(proxy, url, way, chosen)
        assert proxy.dials > len(chosen)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.promise("X1", "X3", "X4", "X6", "X7")
@EVERY_SERVER
@pytest.mark.parametrize("way", ["up", "down"])
async def test_a_conversation_cut_at_every_offset_goes_on(
    tmp_path: Path, server: str, way: str
) -> None:
    async with behind(server, tmp_path) as (proxy, url):
        await cut_at(proxy, url, way, list(await offsets_of(proxy, url, way)))


async def refuse(proxy: ChaosProxy) -> None:
    """Be away for a while."""
    proxy.refuses = True
    await proxy.cut()
    await anyio.sleep(0.5)
    proxy.refuses = False


async def half_open(proxy: ChaosProxy) -> None:
    """Let the server believe in a connection that the client has given up."""
    await proxy.half_open()


async def swallow(proxy: ChaosProxy) -> None:
    """Carry nothing, and tell nobody."""
    proxy.swallow()


async def lose_news(proxy: ChaosProxy) -> None:
    """Lose one message of the server, and then the connection."""
    proxy.withholds = lambda frame: b'"process/output"' in frame


Harm = Callable[[ChaosProxy], Awaitable[None]]


@pytest.mark.promise("X3", "X4")
@pytest.mark.parametrize(
    ("server", "harm"),
    [
        # That a black hole is noticed with the other server, too, `test_exec_codex_server` proves.
        pytest.param(*each, marks=pytest.mark.long if each[1] is swallow else ())
        for each in product(["ours", "codex"], [refuse, half_open, swallow, lose_news])
    ],
)
async def test_lines_come_once_and_in_order_whatever_is_done_to_the_connection(
    tmp_path: Path, server: str, harm: Harm
) -> None:
    async with behind(server, tmp_path) as (proxy, url), client_of(url) as client:
        process = await client.start(printer(150, 0.01))
        await harm(proxy)
        if server == "codex" and harm in (half_open, swallow):
            # It gives a session to nobody while it believes in the old connection.
            await until(lambda: client.state is not ClientState.CONNECTED, within=40)
            await proxy.cut()

        assert await heard(process) == (lines(150), 0)
        assert proxy.dials >= 2


@pytest.mark.promise("X9")
async def test_a_session_is_taken_over_from_a_connection_that_is_only_half_dead(
    tmp_path: Path,
) -> None:
    async with behind("ours", tmp_path) as (proxy, url), client_of(url) as client:
        process = await client.start(printer(20, 0.05))
        for _ in range(5):
            dials = proxy.dials
            await proxy.half_open()
            await until(lambda dials=dials: proxy.dials > dials)  # type: ignore[misc]  # a default
            with anyio.fail_after(10.0):
                await client.files.metadata("/")

        assert await heard(process) == (lines(20), 0)


@pytest.mark.promise("X3")
async def test_a_client_catches_up_with_a_process_that_never_pauses(tmp_path: Path) -> None:
    async with behind("ours", tmp_path) as (proxy, url), client_of(url) as client:
        process = await client.start(printer(5000, 0.005))
        proxy.delay = 0.03  # there is always something new when an answer arrives
        await proxy.cut()
        await until(lambda: client.state is ClientState.RECOVERING)
        with anyio.fail_after(30):
            assert (await client.files.metadata("/")).is_directory

        assert await process.terminate()


@pytest.mark.promise("X5")
@EVERY_SERVER
async def test_more_than_is_retained_is_complete_or_a_named_gap(
    tmp_path: Path, server: str
) -> None:
    async with behind(server, tmp_path) as (proxy, url), client_of(url) as client:
        now, begun = tmp_path / "now", tmp_path / "begun"
        script = f"until [ -e {now} ]; do sleep 0.05; done; seq 1 500000; touch {begun}; exit 3"
        process = await client.start(shell(script))
        proxy.refuses = True
        await proxy.cut()
        now.touch()
        with anyio.move_on_after(1.5 if server == "ours" else 60):  # ours may make it wait
            await until(begun.exists)  # the outage: 3.4 MB, and Codex retains one
        proxy.refuses = False
        if server == "codex":
            with pytest.raises(ReplayGap):
                await heard(process)
        else:
            expected = "".join(f"{number}\n" for number in range(1, 500_001))
            assert await heard(process) == (expected, 3)


@pytest.mark.promise("X4", "X9")
async def test_codex_on_our_server_hears_every_line_through_cuts_at_any_offset(
    tmp_path: Path,
) -> None:
    chance = random.Random(5)
    script = [[run(numbered(60, 0.03), yield_time_ms=20_000)], [Say("Done.")]]
    async with behind("ours", tmp_path) as (proxy, url), on(url, tmp_path, script) as (_, thread):
        await lose_news(proxy)
        async with asking(thread) as asked:
            # Codex starts nothing twice, so only what has started can be heard through cuts.
            await until(lambda: proxy.withholds is None, within=60)
            while not asked.is_done:
                proxy.cut_after["down"] = chance.randrange(500, 4000)
                proxy.cut_after["up"] = chance.randrange(500, 4000)
                await anyio.sleep(0.3)

    assert ran(asked.answers[0]) == (5, lines(60))
    assert proxy.dials > 2


async def killed_at_random(state: Path, *, seconds: float, processes: int) -> int:
    """Kill servers as they come while processes print; return how many there were."""
    chance, servers = random.Random(13), 0
    url = "ws://127.0.0.1:0"
    results: list[tuple[str, int | None]] = []
    count = int(seconds / 0.025)

    async def hear(client: Client) -> None:
        results.append(await heard(await client.start(printer(count, 0.02))))

    async def listen() -> None:
        async with client_of(url, PATIENT) as client, anyio.create_task_group() as readers:
            for _ in range(processes):
                readers.start_soon(hear, client)

    try:
        async with anyio.create_task_group() as tasks:
            while len(results) < processes:
                async with served(state, listen=url, leave=True) as server:
                    servers += 1
                    if servers == 1:
                        url = server.url
                        tasks.start_soon(listen)
                        await until(lambda: len(_printing(state)) == processes, within=30)
                    with anyio.move_on_after(chance.uniform(0.05, 1.0)):
                        await until(lambda: len(results) == processes, within=60)
                    await server.kill()
    finally:
        with anyio.CancelScope(shield=True):
            await end_keeper(state)
    assert results == [(lines(count), 0)] * processes
    return servers


def _printing(state: Path) -> list[Path]:
    return [path for path in state.glob("processes/*/stdout") if path.stat().st_size]


@pytest.mark.promise("X13")
async def test_servers_killed_at_random_lose_no_line_and_repeat_none(tmp_path: Path) -> None:
    assert await killed_at_random(tmp_path / "state", seconds=10, processes=15) > 3


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.promise("X13")
async def test_servers_killed_at_random_for_five_minutes_lose_nothing(tmp_path: Path) -> None:
    assert await killed_at_random(tmp_path / "state", seconds=300, processes=50) > 20


async def start_flood(transport: Transport, size: int) -> None:
    """Let a process put out so many bytes, and hear nothing but the answer to the greeting."""
    hello = {"clientName": "mute"}
    await transport.send([msgspec.json.encode({"id": 1, "method": "initialize", "params": hello})])
    await transport.receive()
    start = {
        "processId": "flood",
        "argv": ["/usr/bin/head", "-c", str(size), "/dev/zero"],
        "cwd": "file:///",
        "env": ENV,
        "tty": False,
    }
    told = [{"method": "initialized"}, {"id": 2, "method": "process/start", "params": start}]
    await transport.send([msgspec.json.encode(message) for message in told])


async def drain(transport: Transport) -> int:
    """Read after all, to the close; return how much came, in numbers without a hole."""
    size, seq = 0, 0
    while True:
        for data in await transport.receive():
            message = msgspec.json.decode(data, type=Json)
            if "params" not in message:
                continue
            seq += 1
            assert message["params"]["seq"] == seq
            size += len(b64decode(message["params"].get("chunk", "")))
            if message["method"] == "process/closed":
                return size


async def rss_while_still(server: Served, file: Callable[[], int]) -> float:
    """Watch until nothing moves any more; return the most memory that was in use."""
    most, size, since = 0.0, -1, 0
    while since < 20:
        most = max(most, server.rss_mb)
        since = since + 1 if file() == size else 0
        size = file()
        await anyio.sleep(0.1)
    return most


async def flooded(state: Path, size: int) -> None:
    async with served(state) as server:
        transport = await connect_websocket(server.url)
        try:
            await start_flood(transport, size)
            most = await rss_while_still(
                server, lambda: sum(path.stat().st_size for path in _printing(state))
            )
            printed = sum(path.stat().st_size for path in _printing(state))
            assert 2**20 < printed < size  # the process waits for whoever does not read
            assert await drain(transport) == size
            assert max(most, server.rss_mb) <= RSS_MB_MAX
        finally:
            await transport.aclose()


@pytest.mark.promise("X11")
async def test_a_client_that_reads_nothing_costs_the_server_no_memory(tmp_path: Path) -> None:
    await flooded(tmp_path / "state", 150_000_000)


@pytest.mark.long
@pytest.mark.promise("X11")
async def test_a_gigabyte_for_a_client_that_reads_nothing_costs_no_memory(tmp_path: Path) -> None:
    await flooded(tmp_path / "state", 1_000_000_000)
