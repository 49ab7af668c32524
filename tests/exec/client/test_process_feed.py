"""A reader takes its time: the process waits for it, others do not, and nothing is missing."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from holdfast.exec.client.client import Client
from holdfast.exec.client.process import Process
from holdfast.exec.failures import ProcessUnknown, RequestUnfit
from holdfast.exec.model import Command, Output
from holdfast.exec.server.ownership import SessionPolicy
from holdfast.rpc.transports.memory import MemoryTransport
from tests.exec.server.housing import housed
from tests.exec.server.talking import until

pytestmark = pytest.mark.anyio

LIMIT = 2**20
PIPE = 2**16  # what was on its way when it stopped
LINES = 600_000  # some 4 MB
ALL = b"".join(b"%d\n" % number for number in range(1, LINES + 1))


def shell(script: str) -> Command:
    return Command(("sh", "-c", script), cwd="/", env={"PATH": "/usr/bin:/bin"})


async def said(process: Process, pause: float = 0.0) -> bytes:
    data = b""
    async for event in process.events():
        if isinstance(event, Output):
            data += event.data
        await anyio.sleep(pause)
    return data


async def standstill(state: Path) -> int:
    """How much is kept, once it does not change any more."""
    kept = -1
    while (now := kept_bytes(state)) != kept or not now:
        kept = now
        await anyio.sleep(0.3)
    return kept


def kept_bytes(state: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in state.glob("processes/*/stdout"))


@pytest.mark.promise("X11", "X4")
async def test_a_process_waits_for_its_reader_and_no_other_process_does(tmp_path: Path) -> None:
    async with housed(tmp_path, retention_bytes_max=LIMIT) as server:
        async with Client(server.dial, unread_bytes_max=2**17) as client:
            slow = await client.start(shell(f"seq 1 {LINES}"))
            assert await standstill(tmp_path) < 2 * LIMIT + PIPE
            assert slow.status is None

            other = await client.start(shell("seq 1 100000"))
            assert len(await said(other)) == 588_895
            assert await said(slow) == ALL


@pytest.mark.promise("X4", "X11")
async def test_a_slow_reader_misses_nothing_through_cuts(tmp_path: Path) -> None:
    links: list[MemoryTransport] = []

    async with housed(tmp_path, retention_bytes_max=LIMIT) as server:

        async def dial() -> MemoryTransport:
            links.append(await server.dial())
            return links[-1]

        async def cut() -> None:
            while True:
                await anyio.sleep(0.2)
                links[-1].cut()

        async with Client(dial, unread_bytes_max=2**17) as client, anyio.create_task_group() as few:
            process = await client.start(shell(f"seq 1 {LINES}"))
            await standstill(tmp_path)
            few.start_soon(cut)
            assert await said(process, pause=0.01) == ALL
            few.cancel_scope.cancel()

    assert len(links) > 2


async def test_a_process_of_which_nobody_reads_anything_can_be_waited_for(tmp_path: Path) -> None:
    async with housed(tmp_path) as server, Client(server.dial, unread_bytes_max=1000) as client:
        process = await client.start(shell(f"seq 1 {LINES}; exit 5"))

        assert await process.wait() == 5
        assert await said(process) == ALL


@pytest.mark.promise("X14")
async def test_a_process_is_forgotten_on_request_and_its_id_is_free(tmp_path: Path) -> None:
    async with housed(tmp_path) as server, Client(server.dial) as client:
        process = await client.start(shell("echo word; exec sleep 60"), process_id="p")
        assert await process.receive() == [Output(1, "stdout", b"word\n")]
        with pytest.raises(RequestUnfit, match="terminate it first"):
            await process.forget()
        await process.terminate()
        assert await process.wait() == 137

        await process.forget()
        await process.forget()  # once more does no harm

        assert await client.processes() == ()
        assert list((tmp_path / "processes").iterdir()) == []
        again = await client.start(shell(f"seq 1 {LINES}"), process_id="p")
        assert await again.wait() == 0
        await again.forget()
        with pytest.raises(ProcessUnknown):  # more than a client holds was left at the server
            await said(again)


@pytest.mark.promise("X14")
async def test_output_that_nobody_reads_is_taken_once_the_end_was_waited_for(
    tmp_path: Path,
) -> None:
    """An hour is for slow readers; whoever only waits for the end leaves nothing behind."""
    policy = SessionPolicy(detached_ttl=0.5)
    async with housed(tmp_path, policy) as server, Client(server.dial) as client:
        read_late = await client.start(shell(f"seq 1 {LINES}"))
        assert await read_late.wait() == 0
        assert await said(read_late) == ALL

        await (await client.start(shell(f"seq 1 {LINES}"))).wait()
        unread = await client.start(shell(f"seq 1 {LINES}"))
        await until(lambda: unread.status == 0)  # nobody has waited, nobody has read
        with anyio.fail_after(60):
            while len(listed := await client.processes()) > 1:  # noqa: ASYNC110  # it must be asked
                await anyio.sleep(0.05)

        assert [each.process_id for each in listed] == [unread.id]
