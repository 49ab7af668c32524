"""Processes of one user meet at a Unix socket."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from pathlib import Path

import anyio
import pytest

from holdfast.rpc.failures import ConnectionClosed, SocketRefused, SocketTaken
from holdfast.rpc.testing import end_of, take
from holdfast.rpc.transports.unix import BACKLOG, UnixTransport, connect, listen

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "private" / "socket"


def descriptors() -> int:
    return len(os.listdir("/dev/fd"))


async def test_client_and_server_converse(path: Path) -> None:
    before = descriptors()
    server = await listen(path)
    client = await connect(path)
    ours = await server.accept()

    await client.send([b'{"id":1}'])
    assert await take(ours, 1) == [b'{"id":1}']
    await ours.send([b"{}"])
    assert await take(client, 1) == [b"{}"]
    await client.aclose()
    assert await end_of(ours) == ConnectionClosed(reason="the other side closed it")

    await ours.aclose()
    await server.aclose()
    assert (descriptors(), os.listdir(path.parent)) == (before, [])


async def test_connections_beyond_the_limit_are_hung_up_on_until_one_ends(path: Path) -> None:
    server = await listen(path, connections_max=1)
    accepted: list[UnixTransport] = []

    async def accept() -> None:
        while True:
            accepted.append(await server.accept())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(accept)
        first, second = await connect(path), await connect(path)
        assert isinstance(await end_of(second), ConnectionClosed)
        await accepted[0].aclose()
        third = await connect(path)
        await third.send([b"{}"])
        with anyio.fail_after(60):
            while len(accepted) < 2:  # noqa: ASYNC110  # accepting sets no event
                await anyio.sleep(0.005)
        assert await take(accepted[1], 1) == [b"{}"]
        tasks.cancel_scope.cancel()
    for transport in (first, second, third, *accepted):
        await transport.aclose()
    await server.aclose()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to dial as a stranger")
async def test_a_stranger_is_hung_up_on() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:  # where a stranger can go
        path = Path(directory, "socket")
        os.chmod(directory, 0o711)
        server = await listen(path)
        os.chmod(path, 0o666)
        with socket.socket(socket.AF_UNIX) as dialled:
            os.seteuid(65534)
            try:
                dialled.connect(str(path))
            finally:
                os.seteuid(0)
            client = await connect(path)
            ours = await server.accept()
            await client.send([b"{}"])
            assert await take(ours, 1) == [b"{}"]
            assert dialled.recv(1) == b""
        for transport in (client, ours, server):
            await transport.aclose()


async def test_closing_a_server_wakes_whoever_accepts_and_keeps_what_was_accepted(
    path: Path,
) -> None:
    server = await listen(path)
    client = await connect(path)
    ours = await server.accept()
    ends: list[ConnectionClosed] = []

    async def accept() -> None:
        try:
            await server.accept()
        except ConnectionClosed as end:
            ends.append(end)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(accept)
        await anyio.wait_all_tasks_blocked()
        await server.aclose()
    await server.aclose()

    assert ends == [ConnectionClosed(reason="closed by us")]
    await client.send([b"{}"])
    assert await take(ours, 1) == [b"{}"]
    await client.aclose()
    await ours.aclose()


async def test_two_servers_do_not_take_one_path(path: Path) -> None:
    server = await listen(path)

    with pytest.raises(SocketTaken):
        await listen(path)

    client = await connect(path)  # the first was not disturbed
    await client.aclose()
    await server.aclose()


async def test_many_who_listen_at_once_leave_exactly_one(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    script = (
        "import anyio, pathlib, sys\n"
        "from holdfast.rpc.transports.unix import listen\n"
        "from holdfast.rpc.failures import SocketTaken\n"
        "async def main():\n"
        "    try:\n"
        "        server = await listen(pathlib.Path(sys.argv[1]))\n"
        "    except SocketTaken:\n"
        "        print('taken', flush=True)\n"
        "    else:\n"
        "        print('listens', flush=True)\n"
        "        sys.stdin.read()\n"
        "        await server.aclose()\n"
        "anyio.run(main)\n"
    )
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", script, str(path)]
    processes = [await anyio.open_process(command, env=environment, stderr=None) for _ in range(6)]
    said: list[bytes] = []
    for process in processes:
        assert process.stdout is not None
        said.append(await process.stdout.receive())
    for process in processes:
        await process.aclose()

    assert sorted(said) == [b"listens\n", *[b"taken\n"] * 5]


async def test_nobody_there_is_said_at_once(path: Path) -> None:
    with pytest.raises(SocketRefused, match="no such file"):
        await connect(path)


async def test_one_who_is_too_busy_to_accept_is_waited_for(path: Path) -> None:
    server = await listen(path)
    waiting = [socket.socket(socket.AF_UNIX) for _ in range(BACKLOG + 1)]
    for dialled in waiting:
        dialled.setblocking(False)
        dialled.connect(str(path))

    async def accept_one() -> None:
        await (await server.accept()).aclose()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(accept_one)
        late = await connect(path)
    await late.aclose()
    for dialled in waiting:
        dialled.close()
    await server.aclose()
