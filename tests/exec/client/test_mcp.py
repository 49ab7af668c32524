"""The MCP SDK gets every message of a process as it is, and is missed with a clear word."""

from __future__ import annotations

import subprocess
import sys

import anyio
import msgspec
import pytest
from mcp import ClientSession
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest

from holdfast.exec.client.mcp import mcp_streams
from holdfast.exec.failures import SdkMissing
from holdfast.rpc.failures import ConnectionLost
from tests.exec.client.test_transport import Actor, stage

pytestmark = pytest.mark.anyio

ODD = "\u2028 \x7f \U0001f9f7 \\n \u0085"


def request(number: int, text: str = ODD) -> JSONRPCRequest:
    return JSONRPCRequest(jsonrpc="2.0", id=number, method="echo", params={"text": text})


async def answered(far: Actor, number: int) -> None:
    """Hear one request of any kind, and answer it with its own parameters."""
    for line in await far.receive():
        params = msgspec.json.decode(line)["params"]
        answer = {"jsonrpc": "2.0", "id": number, "result": params}
        await far.send([msgspec.json.encode(answer)])


@pytest.mark.promise("X10")
async def test_messages_cross_as_they_are_through_cuts() -> None:
    async with (
        stage() as (ours, far, server),
        mcp_streams(ours.process, grace=0.2) as (heard, said),
    ):
        for number in range(20):
            server.links[-1][0].cut()
            await said.send(SessionMessage(request(number)))
            server.links[-1][1].outgoing.cut_after = number * 20
            await answered(far, number)

            answer = await heard.receive()
            assert isinstance(answer, SessionMessage)
            assert answer.message.model_dump()["id"] == number
            assert answer.message.model_dump()["result"] == {"text": ODD}


async def test_what_is_no_message_is_told_as_that_and_the_next_one_arrives() -> None:
    async with stage() as (ours, far, _), mcp_streams(ours.process, grace=0.2) as (heard, _):
        await far.send([b"listening on stdin", b'{"jsonrpc":"2.0","method":"hello"}'])

        assert isinstance(await heard.receive(), ValueError)
        message = JSONRPCNotification(jsonrpc="2.0", method="hello")
        assert await heard.receive() == SessionMessage(message)


async def test_what_was_said_last_arrives_before_the_end() -> None:
    async with stage() as (ours, far, _):
        async with mcp_streams(ours.process, grace=0.2) as (_, said):
            await said.send(SessionMessage(request(1)))

        assert [msgspec.json.decode(line)["id"] for line in await far.receive()] == [1]


async def test_why_a_process_ended_is_told_before_the_stream_ends() -> None:
    async with stage() as (ours, far, _), mcp_streams(ours.process, grace=0.2) as (heard, _):
        far.complain(b"Traceback\n")
        await far.cut([], after=0)

        expected = ConnectionLost(reason="exit status 1", status=1, stderr="Traceback\n")
        assert await heard.receive() == expected
        with pytest.raises(anyio.EndOfStream):
            await heard.receive()


async def test_a_call_to_a_process_that_ends_is_answered() -> None:
    told: list[object] = []

    async def take(message: object) -> None:
        told.append(message)

    async with stage() as (ours, far, _), mcp_streams(ours.process, grace=0.2) as streams:
        async with ClientSession(*streams, message_handler=take) as session:
            async with anyio.create_task_group() as tasks:

                async def call() -> None:
                    with pytest.raises(MCPError), anyio.fail_after(10):
                        await session.send_ping()

                tasks.start_soon(call)
                assert len(await far.receive()) == 1
                await far.cut([], after=0)

    assert told == [ConnectionLost(reason="exit status 1", status=1)]


def test_a_missing_library_is_named() -> None:
    program = (
        "import sys; sys.modules['mcp'] = None\n"
        "import holdfast.exec as e\n"
        "from holdfast.failures import Failure\n"
        "try: e.mcp_streams\n"
        "except Failure as failure: print(failure.code, failure.user_message)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )

    assert SdkMissing.code == "EXEC_EXTRA_MISSING"
    assert done.stdout == (
        "EXEC_EXTRA_MISSING This needs the official MCP SDK, which is an optional part. "
        "Install holdfast[mcp].\n"
    )
