"""Files behind a connection that breaks: asked as often as needed, changed once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

from holdfast.exec.failures import FileMissing, OutcomeUnknown
from tests.exec.stage import stage
from tests.simulation.clock import VirtualTimeLoop
from tests.simulation.exec_server import SimServer

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": lambda: VirtualTimeLoop(seed=1)}


async def cut_in_between(server: SimServer, call: Callable[[], Awaitable[object]]) -> object:
    """Lose the answer to the call, with its connection."""
    server.links[-1][1].outgoing.delay = 1.0

    async def cut() -> None:
        await anyio.sleep(0.5)
        server.links[-1][0].cut()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cut)
        return await call()


@pytest.mark.promise("X7")
async def test_a_write_that_happened_is_found_out() -> None:
    async with stage() as (client, server):
        await cut_in_between(server, lambda: client.files.write("/ä", b"\0\xff"))

        assert server.files == {"file:///%C3%A4": b"\0\xff"}
        assert server.file_writes == 1


@pytest.mark.promise("X7")
async def test_a_write_that_did_not_happen_is_not_called_done() -> None:
    async with stage() as (client, server):
        server.links[-1][0].outgoing.cut_after = 10

        with pytest.raises(OutcomeUnknown):
            await client.files.write("/a", b"new")
        assert server.file_writes == 0


async def test_a_read_is_asked_again() -> None:
    async with stage() as (client, server):
        await client.files.write("/a", b"content")

        assert await cut_in_between(server, lambda: client.files.read("/a")) == b"content"


async def test_a_file_that_is_not_there_is_missing() -> None:
    async with stage() as (client, _):
        with pytest.raises(FileMissing):
            await client.files.read("/missing")
