"""The server as a process: where it listens, who may come in, and how it ends."""

from __future__ import annotations

import http.client
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from holdfast.exec.failures import OrphansEnded, ProcessLost, StateTaken
from holdfast.exec.keeper.client_loop import KeeperClient
from holdfast.exec.keeper.protocol import LOCK_NAME, KeeperName
from holdfast.exec.model import Command, Output
from holdfast.exec.server.ownership import SessionPolicy
from holdfast.exec.server.server import ServerSettings, serve
from holdfast.rpc.failures import TokenRefused
from holdfast.rpc.transports.websocket import connect_websocket
from holdfast.telemetry import Telemetry
from holdfast.telemetry.testing import MemorySink
from holdfast.world import SystemClock
from tests.exec.planes import open_files_max, status_of
from tests.exec.server.talking import (
    PATH,
    PATIENCE,
    Refused,
    Talk,
    command,
    end_keeper,
    introduced,
    is_alive,
    names,
    served,
    talking,
    until,
)
from tests.faults.test_exec_chaos import client_of

pytestmark = pytest.mark.anyio
if sys.platform != "linux":
    pytest.skip("the keeper needs splice", allow_module_level=True)

ENV = {**os.environ, "PYTHONPATH": "src"}


def status(url: str, path: str = "/readyz", **headers: str) -> int:
    """The status of one plain HTTP request; a header is left out by an empty value."""
    host = url.removeprefix("ws://")
    connection = http.client.HTTPConnection(host, timeout=PATIENCE)
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("GET", path, headers={**upgrade, **named} if path == "/" else named)
    answer = connection.getresponse().status
    connection.close()
    return answer


def parent(pid: int) -> int:
    """Who started a process."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.promise("X12")
async def test_only_who_has_the_token_comes_in(tmp_path: Path) -> None:
    token = tmp_path / "token"
    async with served(tmp_path / "s", "--token-file", str(token)) as server:
        secret = token.read_text().strip()
        statuses = [
            status(server.url),
            status(server.url, "/"),
            status(server.url, "/", Authorization="Bearer wrong"),
            status(server.url, "/", Authorization=f"Bearer {secret}"),
            status(server.url, "/", Authorization=f"Bearer {secret}", Origin="http://x"),
            status(server.url, "/", Authorization=f"Bearer {secret}", Host="evil.example"),
            status(server.url, "/other", Authorization=f"Bearer {secret}"),
        ]
        async with talking(server.url, token=secret) as talk:
            await talk.introduce()
            assert await talk.call("environment/status") == {"status": "ready"}

    assert statuses == [200, 401, 401, 101, 403, 421, 404]


@pytest.mark.promise("X12")
@pytest.mark.parametrize(
    "options",
    [
        ("--listen", "ws://0.0.0.0:0", "--no-token"),
        ("--listen", "http://127.0.0.1:0", "--no-token"),
        ("--listen", "unix://relative", "--no-token"),
    ],
)
def test_what_must_not_be_listened_at_is_refused(tmp_path: Path, options: tuple[str, ...]) -> None:
    argv = command("--state", str(tmp_path / "s"), *options)
    done = subprocess.run(argv, env=ENV, capture_output=True, text=True, timeout=30)

    assert (done.returncode != 0, done.stdout, "Traceback" in done.stderr) == (True, "", False)


async def test_it_listens_at_a_unix_socket(tmp_path: Path) -> None:
    place = f"unix://{tmp_path}/exec.sock"
    async with served(tmp_path / "s", listen=place) as server, introduced(server.url) as talk:
        ran = await talk.run("p", "echo", "hi")

    assert (server.url, ran) == (place, (0, b"hi\n"))


def test_on_standard_input_it_serves_one_connection_and_leaves_nothing() -> None:
    argv = ["sleep", f"61.{os.getpid()}"]
    start = {"processId": "p", "argv": argv, "cwd": "file:///tmp", "env": PATH, "tty": False}
    messages: list[dict[str, object]] = [
        {"id": 1, "method": "initialize", "params": {"clientName": "x"}},
        {"method": "initialized"},
        {"id": 2, "method": "process/start", "params": start},
    ]
    server = subprocess.Popen(
        command("--listen", "stdio"), env=ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with server:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(b"".join(json.dumps(each).encode() + b"\n" for each in messages))
        server.stdin.flush()
        process_started, started = (json.loads(server.stdout.readline()) for _ in range(2))
        is_running = subprocess.run(["pgrep", "-f", argv[1]], capture_output=True).returncode == 0
        server.stdin.close()
        code = server.wait(timeout=PATIENCE)

    assert process_started["result"]["environmentInfo"]["platformOs"] == "linux"
    assert started == {"id": 2, "result": {"processId": "p", "sandboxType": "none"}}
    assert (is_running, code) == (True, 0)
    assert subprocess.run(["pgrep", "-f", argv[1]], capture_output=True).returncode == 1


async def test_told_to_end_it_leaves_its_processes_to_the_next(tmp_path: Path) -> None:
    state = tmp_path / "s"
    async with served(state, leave=True) as server, introduced(server.url) as first:
        await first.start("p", "sh", "-c", "echo one; read x; echo two", pipeStdin=True)
        await first.until(lambda: bool(first.output("p")))
        server.process.send_signal(signal.SIGTERM)
        with anyio.fail_after(60):
            code = await server.process.wait()
    async with served(state) as server, introduced(server.url, first.session) as second:
        await second.call("process/read", processId="p", afterSeq=1)
        await second.call("process/write", processId="p", chunk="Cg==", writeId="1")
        await second.closed("p")

    assert code == 0
    assert second.output("p") == b"two\n"


async def test_told_to_end_them_too_it_leaves_nothing(tmp_path: Path) -> None:
    state = tmp_path / "s"
    async with served(state, "--end-processes") as server, introduced(server.url) as talk:
        await talk.start("p", "sleep", "60")
        (listed,) = (await talk.call("process/list"))["processes"]
        server.process.send_signal(signal.SIGTERM)
        with anyio.fail_after(60):
            code = await server.process.wait()

    assert code == 0
    assert not is_alive(listed["pid"])
    assert names(state / "sessions") == []


@pytest.mark.long
@pytest.mark.parametrize("options", [(), ("--end-processes",)], ids=["leaving", "ending"])
async def test_told_to_end_it_ends_although_its_keeper_is_stuck(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    state = tmp_path / "s"
    async with served(state, *options, leave=True) as server, introduced(server.url) as talk:
        await talk.start("p", "sleep", "60")
        name = KeeperName.parse((state / LOCK_NAME).read_text())
        assert name is not None
        os.kill(name.pid, signal.SIGSTOP)
        server.process.send_signal(signal.SIGTERM)
        with anyio.fail_after(60):
            code = await server.process.wait()
        os.kill(name.pid, signal.SIGCONT)
    await end_keeper(state)

    assert code == 0


@pytest.mark.long
async def test_it_has_room_for_more_than_a_process_may_have_open(tmp_path: Path) -> None:
    most = 64 + max(int(name) for name in os.listdir("/proc/self/fd"))
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 10 * most:
        pytest.skip("a server may not have so many open files here")
    with open_files_max(most):
        opening = served(tmp_path / "s")
        server = await opening.__aenter__()
    try:
        async with introduced(server.url) as talk:
            for number in range(most // 3):
                await talk.start(str(number), "sleep", "60", pipeStdin=True)
            told = await talk.run("told", "sh", "-c", "ulimit -n")
        assert len(os.listdir(f"/proc/{server.process.pid}/fd")) > most
    finally:
        await opening.__aexit__(None, None, None)

    assert told == (0, b"%d\n" % most)


async def test_one_state_has_one_server(tmp_path: Path) -> None:
    state = tmp_path / "s"
    async with served(state):
        argv = command("--state", str(state), "--no-token")
        done = await anyio.run_process(argv, env=ENV, check=False)

    assert done.returncode != 0
    assert b"Traceback" not in done.stderr


@pytest.mark.promise("X13")
async def test_starts_wait_for_the_keeper_that_replaces_a_dead_one(tmp_path: Path) -> None:
    """None of them is refused, whether the server has noticed the death by then or not."""
    async with served(tmp_path / "s") as server, introduced(server.url) as talk:
        for turn in range(3):
            await talk.start(f"p{turn}", "sleep", "60")
            (listed,) = (
                each
                for each in (await talk.call("process/list"))["processes"]
                if not each["exited"]
            )
            keeper = parent(listed["pid"])
            os.kill(keeper, signal.SIGKILL)
            await until(lambda keeper=keeper: not is_alive(keeper) or is_zombie(keeper))
            asked = [await talk.ask("process/start", echo(f"q{turn}.{n}")) for n in range(20)]
            for number, name in enumerate(asked):
                await talk.answer(name)
                await talk.closed(f"q{turn}.{number}")
                assert talk.output(f"q{turn}.{number}") == b"again\n"
            await talk.closed(f"p{turn}")
            found = await talk.call("process/read", processId=f"p{turn}")
            assert "keeper" in found["failure"]
            assert found["lost"] is True


def is_zombie(pid: int) -> bool:
    return status_of(pid)["State"].startswith("Z")


def echo(name: str) -> dict[str, object]:
    return {"processId": name, "argv": ["echo", "again"], "cwd": "file:///", "env": PATH} | {
        "tty": False
    }


@pytest.mark.promise("X13")
async def test_a_lost_process_is_told_apart_from_one_that_was_killed(tmp_path: Path) -> None:
    state = tmp_path / "s"
    script = Command(("sh", "-c", "echo word; exec sleep 60"), cwd="/", env=PATH)
    async with served(state, leave=True) as first, client_of(first.url) as client:
        process = await client.start(script)
        assert await process.receive() == [Output(1, "stdout", b"word\n")]
        (listed,) = await client.processes()
        os.kill(parent(listed.pid), signal.SIGKILL)

        for reads in (process.wait, process.receive, process.receive):
            with pytest.raises(ProcessLost):
                await reads()
        assert process.status is None
        # The next server knows it, too, and so does one who follows it from the start.
        await first.kill()
        async with served(state, listen=first.url):
            (listed,) = await client.processes()
            assert (listed.exit_code, listed.lost) == (137, True)
            follower = await client.follow(listed)
            assert await follower.receive() == [Output(1, "stdout", b"word\n")]
            with pytest.raises(ProcessLost):
                await follower.receive()


@pytest.mark.promise("X11")
async def test_output_that_nobody_reads_costs_no_memory(tmp_path: Path) -> None:
    size = 300_000_000
    async with served(tmp_path / "s") as server:
        transport = await connect_websocket(server.url)
        talk = Talk(transport)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(talk.listen)
            await talk.introduce()
            tasks.cancel_scope.cancel()
        argv = ["head", "-c", str(size), "/dev/zero"]
        start = {"processId": "p", "argv": argv, "cwd": "file:///tmp", "env": PATH, "tty": False}
        await talk.tell({"id": 9, "method": "process/start", "params": start})
        files = tmp_path / "s" / "processes"
        held, most = -1, 0.0
        while (now := sum(f.stat().st_blocks for f in files.glob("*/stdout"))) != held or not now:
            held, most = now, max(most, server.rss_mb)
            await anyio.sleep(0.3)
        told = 0
        with anyio.fail_after(50):
            while told < size * 4 // 3:
                told += sum(map(len, await transport.receive()))
                most = max(most, server.rss_mb)
        await transport.aclose()

    assert held * 512 < 80 * 2**20
    assert most < 150


async def test_without_takeover_a_second_connection_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path / "s", "--no-takeover") as server, introduced(server.url) as talk:
        async with talking(server.url) as second:
            with pytest.raises(Refused) as refused:
                await second.introduce(talk.session)

    assert refused.value.code == -32010


EVERYTHING = {
    "inherit": "all",
    "ignoreDefaultExcludes": True,
    "exclude": [],
    "set": {},
    "includeOnly": [],
}


def is_resting(pid: int) -> bool:
    return b"idle_listener.py" in Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.mark.parametrize("way", ["tcp", "unix"])
async def test_a_server_that_nobody_needs_rests_until_somebody_knocks(
    tmp_path: Path, way: str
) -> None:
    path, token = tmp_path / "sockets" / "s", tmp_path / "token"
    listen = f"unix://{path}" if way == "unix" else "ws://127.0.0.1:0"
    async with served(tmp_path / "s", "--token-file", str(token), listen=listen) as server:
        await until(lambda: is_resting(server.process.pid))
        assert server.rss_mb < 15
        with pytest.raises(StateTaken):
            await KeeperClient.open(server.state)

        with pytest.raises(TokenRefused):
            await connect_websocket(server.url, token="wrong", connect_longest=PATIENCE)
        async with talking(server.url, token=token.read_text().strip()) as talk:
            await talk.introduce()
            status, said = await talk.run("p", "env", envPolicy=EVERYTHING)
            assert (status, b"RESTED" in said) == (0, False)
        assert not is_resting(server.process.pid)
        server.process.terminate()
        assert await server.process.wait() == 0
    assert not path.exists()


async def test_told_to_end_while_it_rests_it_leaves_nothing(tmp_path: Path) -> None:
    place = tmp_path / "tmp"
    place.mkdir()
    argv = command("--listen", f"unix://{tmp_path}/s", "--no-token")
    async with await anyio.open_process(argv, env={**ENV, "TMPDIR": str(place)}) as process:
        assert process.stdout is not None
        await process.stdout.receive()
        await until(lambda: is_resting(process.pid))
        assert len(list(place.iterdir())) == 1
        process.terminate()
        assert await process.wait() == 0
    assert (list(place.iterdir()), (tmp_path / "s").exists()) == ([], False)


def knock(url: str, said: bytes = b"") -> socket.socket:
    """Come as somebody who says no more than this."""
    host, port = url.removeprefix("ws://").split(":")
    knocking = socket.create_connection((host, int(port)), timeout=PATIENCE)
    knocking.sendall(said)
    return knocking


async def test_whoever_knocks_and_says_nothing_keeps_nobody_waiting(tmp_path: Path) -> None:
    async with served(tmp_path / "s") as server:
        await until(lambda: is_resting(server.process.pid))
        knock(server.url).close()
        with knock(server.url), knock(server.url, b"GET / HTTP/1.1\r\nHost: "):
            async with introduced(server.url) as talk:
                assert await talk.run("p", "echo", "word") == (0, b"word\n")


async def test_many_may_knock_at_once(tmp_path: Path) -> None:
    statuses: list[int] = []
    async with served(tmp_path / "s") as server:

        async def come(number: int) -> None:
            async with introduced(server.url) as talk:
                statuses.append((await talk.run("p", "sh", "-c", f"exit {number}"))[0])

        await until(lambda: is_resting(server.process.pid))
        async with anyio.create_task_group() as tasks:
            for number in range(24):
                tasks.start_soon(come, number)
    assert sorted(statuses) == list(range(24))


async def test_it_is_ready_while_it_rests(tmp_path: Path) -> None:
    async with served(tmp_path / "s", "--token-file", str(tmp_path / "token")) as server:
        await until(lambda: is_resting(server.process.pid))
        assert await to_thread.run_sync(status, server.url) == 200


@pytest.mark.promise("X13")
async def test_one_that_was_killed_while_it_rested_is_replaced_by_the_next(tmp_path: Path) -> None:
    listen = f"unix://{tmp_path}/sockets/s"
    async with served(tmp_path / "s", listen=listen, leave=True) as server:
        await until(lambda: is_resting(server.process.pid))
        await server.kill()
    async with served(tmp_path / "s", listen=listen) as server, introduced(server.url) as talk:
        assert await talk.run("p", "echo", "word") == (0, b"word\n")


@pytest.mark.parametrize("seconds", ["0.1", "2.5"], ids=["before it rests", "while it rests"])
async def test_an_idle_server_ends_when_it_was_asked_to(tmp_path: Path, seconds: str) -> None:
    async with served(tmp_path / "s", "--idle-exit", seconds) as server:
        with anyio.fail_after(PATIENCE):
            assert await server.process.wait() == 0


async def test_a_session_keeps_a_server_from_ending(tmp_path: Path) -> None:
    options = ("--idle-exit", "0.3", "--detached-ttl", "2")
    async with served(tmp_path / "s", *options) as server:
        async with introduced(server.url):
            await anyio.sleep(0.5)
        left = anyio.current_time()
        with anyio.fail_after(PATIENCE):
            await server.process.wait()
        assert anyio.current_time() - left > 2


@pytest.mark.promise("X13")
async def test_what_outlived_a_lost_keeper_is_ended_and_reported(tmp_path: Path) -> None:
    state = tmp_path / "s"
    async with served(state, leave=True) as server, introduced(server.url) as talk:
        await talk.start("p", "sh", "-c", "setsid sleep 60 & echo $!; wait")
        await talk.until(lambda: talk.output("p").endswith(b"\n"))
        orphan = int(talk.output("p"))
        (listed,) = (await talk.call("process/list"))["processes"]
        await server.kill()
        os.kill(parent(listed["pid"]), signal.SIGKILL)  # and nobody is there to see it
    assert is_alive(orphan)

    sink = MemorySink()
    telemetry = Telemetry([sink], clock=SystemClock())
    settings = ServerSettings(
        state=state, telemetry=telemetry, idle_exit=0.1, policy=SessionPolicy(0.1)
    )
    assert await serve(settings, print) is None
    await until(lambda: not is_alive(orphan))
    codes = [record.failure["code"] for record in sink.records if record.failure is not None]
    assert codes == [OrphansEnded.code]
