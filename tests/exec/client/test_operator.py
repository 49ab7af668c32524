"""An operator at a real server, through its death."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from holdfast.exec import Client, end_orphans, find_orphans, operating
from holdfast.exec.failures import SessionExpired
from holdfast.exec.keeper.protocol import MARK, KeeperName
from holdfast.exec.model import Command, Orphan, Output
from holdfast.rpc import WebSocketServer, connect_websocket, listen_websocket
from holdfast.rpc.failures import RequestTimedOut
from tests.exec.server.talking import PATH, served

pytestmark = pytest.mark.anyio


def _told(script: str) -> Command:
    return Command(("sh", "-c", script), cwd="/tmp", env=PATH, has_stdin=True)


async def test_it_sees_reads_and_ends_what_another_runs(tmp_path: Path) -> None:
    async with (
        served(tmp_path) as server,
        Client(lambda: connect_websocket(server.url)) as client,
        operating(lambda: connect_websocket(server.url)) as operator,
    ):
        process = await client.start(_told("echo out; exec sleep 100"), process_id="p")
        (seen,) = await operator.processes()
        page = await operator.read(seen, after=0, wait=20)
        await operator.signal(seen, "TERM")
        status = await process.wait()

    assert (seen.session_id, seen.attached) == (client.session_id, True)
    assert b"".join(chunk.data for chunk in page.chunks) == b"out\n"
    assert status == 143


async def test_another_client_takes_up_what_was_left_and_writes_for_itself(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        async with Client(lambda: connect_websocket(server.url)) as first:
            process = await first.start(_told("read a; echo $a; read b; echo $b"), process_id="p")
            await process.write(b"one\n")
            assert isinstance((await process.receive())[0], Output)
            session = first.session_id
        assert session is not None
        async with Client(lambda: connect_websocket(server.url)).resume(session) as second:
            (listed,) = await second.processes()
            again = await second.follow(listed)
            await again.write(b"two\n")
            said = [event async for event in again.events()]

    assert b"".join(event.data for event in said if isinstance(event, Output)) == b"one\ntwo\n"


async def test_a_session_that_is_gone_is_not_taken_up(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        with pytest.raises(SessionExpired), anyio.fail_after(60):
            async with Client(lambda: connect_websocket(server.url)).resume("nobody"):
                pass


@pytest.mark.parametrize("is_cut", [False, True])
async def test_what_nobody_answers_is_not_asked_for_ever(tmp_path: Path, is_cut: bool) -> None:
    async def deaf(server: WebSocketServer) -> None:
        while True:
            transport = await server.accept()
            if is_cut:
                await transport.receive()
                await transport.aclose()

    url = f"unix://{tmp_path}/s"
    async with anyio.create_task_group() as tasks:
        server = await listen_websocket(url, token=None)
        tasks.start_soon(deaf, server)
        with anyio.fail_after(60):
            async with operating(lambda: connect_websocket(url), answer_longest=0.3) as operator:
                with pytest.raises(RequestTimedOut) as late:
                    await operator.processes()
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await server.aclose()

    assert late.value == RequestTimedOut(method="operator/list", limit=0.3)


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc here")
def test_orphans_are_found_and_ended_exactly() -> None:
    name = KeeperName.own()
    orphan, held = (
        subprocess.Popen(["/bin/sleep", "60"], env={MARK: f"key@{keeper}"})
        for keeper in (name._replace(started=1), name)
    )
    with orphan, held:
        mine = [Orphan(each.pid, "/bin/sleep 60") for each in (orphan, held)]
        found = find_orphans()

        assert [each in found for each in mine] == [True, False]
        assert end_orphans(mine) == 1
        assert (orphan.wait(timeout=60), held.poll()) == (-signal.SIGKILL, None)
        held.kill()
