"""Client, server and keeper of different versions work together, or say which one is too old."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast.exec import Client, RecoveryPolicy
from holdfast.exec.failures import KeeperMismatched
from holdfast.exec.keeper.discovery import connect_keeper, lock_state
from holdfast.exec.keeper.protocol import VERSIONS
from holdfast.exec.model import Closed, Command, Event, Exited, Output
from holdfast.failures import ungrouped
from holdfast.rpc.failures import VersionRefused
from holdfast.rpc.transports.memory import MemoryTransport, pair
from tests.exec.server.housing import housed
from tests.exec.server.talking import Refused, introduced, served, until
from tests.faults.test_exec_chaos import client_of, heard, printer
from tests.journeys.stage import linux_only
from tests.journeys.test_exec_server import lines
from tests.parts import exec_version_1 as version_1
from tests.parts import keeper_version_1

pytestmark = [pytest.mark.anyio, linux_only]

POLICY = RecoveryPolicy(window=60.0, wait_first=0.01, wait_longest=0.02)
WORD = Command(version_1.ARGV, cwd="/", env={"PATH": "/usr/bin:/bin"}, has_stdin=True)
SAID: list[Event] = [
    Output(1, "stdout", b"one\n"),
    Output(2, "stdout", b"got word\n"),
    Exited(3, 7),
    Closed(4),
]


async def test_a_client_of_version_1_is_served_as_ever(tmp_path: Path) -> None:
    async with housed(tmp_path) as server:
        client = version_1.Client1()
        for _ in range(2):
            wire = await server.dial()
            with anyio.fail_after(60):
                assert await client.talk(wire) == []
            await wire.aclose()


async def spoken(server: version_1.Server1) -> list[Event]:
    """What our client makes of a server that is cut off once in the middle."""
    async with anyio.create_task_group() as tasks:

        async def dial() -> MemoryTransport:
            ours, theirs = pair(buffer_bytes_max=2**20)
            tasks.start_soon(server.serve, theirs)
            return ours

        async with Client(dial, policy=POLICY) as client:
            process = await client.start(WORD, process_id="p")
            events = await process.receive()
            await until(lambda: len(server.heard) >= 6)  # the second connection has asked
            await process.write(b"word\n")
            async for event in process.events():
                events.append(event)
        tasks.cancel_scope.cancel()
    return events


@pytest.mark.parametrize(
    "versions", [None, {"oldest": 1, "newest": 1}, {"oldest": 1, "newest": 2, "since": "later"}]
)
async def test_our_client_gets_along_with_every_server_that_still_speaks_version_1(
    versions: dict[str, Any] | None,
) -> None:
    assert await spoken(version_1.Server1(versions)) == SAID


async def test_a_server_of_a_later_version_alone_is_refused_by_name_at_once() -> None:
    with anyio.fail_after(30), pytest.raises(VersionRefused) as raised, ungrouped():
        await spoken(version_1.Server1({"oldest": 2, "newest": 3}))

    refused = raised.value
    assert (refused.ours_oldest, refused.ours_newest) == (1, 1)
    assert (refused.theirs_oldest, refused.theirs_newest) == (2, 3)
    assert "Update the older" in refused.user_message


async def test_a_client_of_a_later_version_is_told_what_we_speak(tmp_path: Path) -> None:
    async with housed(tmp_path) as server, server.talk(introduced=False) as talk:
        with pytest.raises(Refused) as raised:
            await talk.call("initialize", clientName="x", versions={"oldest": 2, "newest": 2})
        welcome = await talk.call("initialize", clientName="x", versions={"oldest": 1, "newest": 9})

    assert raised.value.failure == "RPC_VERSION_REFUSED"
    assert welcome["versions"] == {"oldest": 1, "newest": 1}


async def test_our_client_says_why_a_server_refused_its_version() -> None:
    ours, theirs = pair(buffer_bytes_max=2**20)

    async def dial() -> MemoryTransport:
        return ours

    async def refuse() -> None:
        asked = json.loads((await theirs.receive())[0])
        assert asked["params"]["versions"] == {"oldest": 1, "newest": 1}
        await theirs.send([json.dumps({"id": asked["id"], "error": REFUSED}).encode()])

    with pytest.raises(VersionRefused) as raised, ungrouped():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(refuse)
            async with Client(dial, policy=POLICY):
                pass

    assert (raised.value.ours_newest, raised.value.theirs_oldest) == (1, 4)


# As a server would say it that speaks 4 to 5.
REFUSED = {
    "code": -32603,
    "message": "versions do not meet",
    "data": {
        "code": "RPC_VERSION_REFUSED",
        "kind": "misconfigured",
        "title": "Versions do not meet",
        "message": "",
        "userMessage": "",
        "recovery": "fix_input",
        "retryable": False,
        "actions": [],
        "details": {
            "protocol": "exec",
            "ours_oldest": 4,
            "ours_newest": 5,
            "theirs_protocol": "exec",
            "theirs_oldest": 1,
            "theirs_newest": 1,
        },
    },
}


@contextmanager
def keeper_1(state: Path) -> Iterator[int]:
    """A keeper of version 1 that holds a directory; its number."""
    state.mkdir(mode=0o700)
    command = [sys.executable, "-I", "-S", str(keeper_version_1.__file__), str(state)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as keeper:
        assert keeper.stdout is not None
        keeper.stdout.readline()
        try:
            yield keeper.pid
        finally:
            keeper.kill()


@pytest.mark.promise("X13")
async def test_what_a_keeper_of_version_1_holds_is_adopted(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with keeper_1(state):
        async with served(state, leave=True) as first:
            async with client_of(first.url) as client:
                process = await client.start(printer(200, 0.01))
                await until(lambda: any(state.glob("processes/*/stdout")))
                await first.kill()
                async with served(state, listen=first.url, leave=True) as second:
                    assert await heard(process) == (lines(200), 0)
                    await second.kill()


async def test_a_keeper_of_version_1_is_not_told_to_later_versions(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with keeper_1(state):
        lock = lock_state(state)
        with pytest.raises(KeeperMismatched) as raised:
            connect_keeper(state, versions=(2, 3))
        os.close(lock)

    assert raised.value == KeeperMismatched(state=str(state), ours=(2, 3), theirs=(1,))


def asked(keeper: socket.socket, **message: object) -> tuple[dict[str, Any], list[int]]:
    """Speak with a keeper as a server of version 1 did."""
    keeper.send(json.dumps(message).encode())
    return heard_from(keeper)


def heard_from(keeper: socket.socket) -> tuple[dict[str, Any], list[int]]:
    packet, descriptors, _, _ = socket.recv_fds(keeper, 100_000, 8)
    return json.loads(packet), list(descriptors)


@contextmanager
def our_keeper(state: Path) -> Iterator[socket.socket]:
    """Our keeper, as a server of version 1 meets it."""
    lock = lock_state(state)
    connect_keeper(state).connection.close()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as keeper:
        keeper.settimeout(60)
        keeper.connect(str(state / "keeper.sock"))
        yield keeper
        ending, _ = asked(keeper, id=100, ask="end")
        assert version_1.fits(ending, {"id": 100, "is_ending": True})
    os.close(lock)


ORDER = {"key": "k", "argv": ["cat"], "cwd": "/", "env": {"PATH": "/usr/bin:/bin"}}
ORDER |= {"arg0": None, "terminal": None, "pipe_stdin": True}


async def test_our_keeper_understands_a_server_of_version_1(tmp_path: Path) -> None:
    with our_keeper(tmp_path) as keeper:
        hello, _ = asked(keeper, id=1, ask="hello", versions=[1])
        started, ends = asked(keeper, id=2, ask="start", **ORDER)
        listed, again = asked(keeper, id=3, ask="list")
        last, _ = heard_from(keeper)
        os.write(ends[0], b"word\n")
        said = os.read(ends[1], 100)
        for descriptor in (*ends, *again):
            os.close(descriptor)
        closed, _ = asked(keeper, id=4, ask="close_stdin", key="k")
        news, _ = heard_from(keeper)
        forgotten, _ = asked(keeper, id=5, ask="forget", key="k")

    held = {"key": "k", "pid": started["held"]["pid"], "status": None}
    held["holds"] = ["stdin", "stdout", "stderr"]
    expected: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (hello, {"id": 1, "version": max(VERSIONS), "versions": list(VERSIONS)}),
        (started, {"id": 2, "held": held}),
        (listed, {"id": 3, "more": True, "held": held}),
        (last, {"id": 3, "more": False}),
        (closed, {"id": 4}),
        (news, {"news": "exited", "key": "k", "status": 0}),
        (forgotten, {"id": 5}),
    ]
    assert [told for told, wanted in expected if not version_1.fits(told, wanted)] == []
    assert said == b"word\n"


async def test_a_server_of_version_1_would_not_touch_our_state(tmp_path: Path) -> None:
    """It looked at the version of every session before it did anything, and stopped at a later."""
    async with served(tmp_path / "state") as server, introduced(server.url) as talk:
        record = json.loads((tmp_path / "state" / "sessions" / talk.session).read_bytes())

    assert record["version"] > 1


async def test_the_state_that_a_server_of_version_1_left_is_read(tmp_path: Path) -> None:
    state = tmp_path / "state"
    for name, content in version_1.STATE.items():
        (state / name).parent.mkdir(parents=True, exist_ok=True)
        (state / name).write_bytes(content)
    async with served(state) as server:
        async with introduced(server.url, version_1.SESSION) as talk:
            page = await talk.call("process/read", processId="p")

    told = [(chunk["seq"], b64decode(chunk["chunk"]).decode()) for chunk in page["chunks"]]
    assert told == version_1.STATE_EVENTS
    assert (page["exitCode"], page["closed"]) == (version_1.STATE_EXIT, True)
    assert page["nextSeq"] == version_1.STATE_NEXT_SEQ
