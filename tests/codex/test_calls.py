"""Requests: each within its limit, again only when the server was too busy to look."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import anyio
import pytest

from holdfast.codex.calls import RequestSender
from holdfast.codex.failures import CodexIncompatible, CodexOverloaded
from holdfast.codex.versions import NEWEST, OLDEST, UNKNOWN
from holdfast.codex.wire.generated import (
    CommandExecParams,
    TextUserInput,
    TurnInterruptParams,
    TurnInterruptResponse,
    TurnStartParams,
    TurnStartResponse,
)
from holdfast.rpc import Connection, ConnectionConfig
from holdfast.rpc.failures import (
    ConnectionClosed,
    ErrorResponse,
    RequestTimedOut,
    Unencodable,
)
from holdfast.rpc.model import Dialect
from holdfast.rpc.transports.memory import MemoryTransport, pair
from holdfast.world.testing import SeededRandomSource
from tests.codex.served import Watched
from tests.simulation.clock import VirtualTimeLoop

pytestmark = pytest.mark.anyio

Answer = Mapping[str, object] | None  # None leaves a request open
BUSY: Answer = {"error": {"code": -32001, "message": "Server overloaded; retry later."}}
FINE: Answer = {"result": {"turn": {"id": "u", "items": [], "status": "inProgress"}}}


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": lambda: VirtualTimeLoop(seed=1)}


@dataclass
class Server:
    """Answers as the script says, in order; notes what was asked, and when."""

    wire: MemoryTransport
    script: list[Answer]
    asked: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])

    async def serve(self) -> None:
        with suppress(ConnectionClosed):
            while True:
                for message in map(json.loads, await self.wire.receive()):
                    self.asked.append((anyio.current_time(), message["method"]))
                    if answer := self.script.pop(0):
                        said = json.dumps({"id": message["id"], **answer})
                        await self.wire.send([said.encode()])


@asynccontextmanager
async def calling(*script: Answer, watched: Watched | None = None) -> AsyncGenerator[Talk]:
    """Calls to a server with this script."""
    near, far = pair()
    server = Server(far, list(script))
    terms = ConnectionConfig(dialect=Dialect())
    telemetry = (watched or Watched()).telemetry
    async with Connection(near, terms) as connection, anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve)
        yield Talk(RequestSender(connection, telemetry, SeededRandomSource(1)), server, connection)
        tasks.cancel_scope.cancel()


@dataclass
class Talk:
    """Both sides of a conversation."""

    calls: RequestSender
    server: Server
    connection: Connection

    async def start(self) -> TurnStartResponse:
        """Start a turn: what must never happen twice by accident."""
        params = TurnStartParams("t", (TextUserInput("hi"),))
        return await self.calls.typed("turn/start", params, TurnStartResponse)


async def test_an_answer_is_read_forgiving_what_is_new() -> None:
    novel = {"result": {"turn": {"id": "u", "items": [{"type": "new"}], "status": "x"}, "more": 1}}
    async with calling(novel) as talk:
        started = await talk.start()

    assert (started.turn.id, started.turn.status) == ("u", "x")


async def test_an_answer_that_says_nothing_is_named() -> None:
    async with calling({"result": {"turn": None}}) as talk:
        with pytest.raises(CodexIncompatible) as failed:
            await talk.start()

    assert failed.value.method == "turn/start"
    assert all(it in failed.value.user_message for it in (OLDEST, NEWEST, UNKNOWN))
    assert len(talk.server.asked) == 1


async def test_an_empty_answer_is_enough_where_nothing_is_promised() -> None:
    async with calling({"result": None}) as talk:
        params = TurnInterruptParams("t", "u")
        got = await talk.calls.typed("turn/interrupt", params, TurnInterruptResponse)

    assert got == TurnInterruptResponse()


@pytest.mark.promise("T5")
async def test_a_server_too_busy_to_look_is_asked_again_and_every_wait_is_announced() -> None:
    watched = Watched()
    async with calling(BUSY, BUSY, FINE, watched=watched) as talk:
        started = await talk.start()

    times = [at for at, _ in talk.server.asked]
    waits = [fields["wait"] for fields in watched.of("note")]
    assert started.turn.id == "u"
    assert [method for _, method in talk.server.asked] == ["turn/start"] * 3
    assert 0.1 <= times[1] - times[0] <= 0.5
    assert 1.0 <= times[2] - times[1] <= 2.0
    assert waits == pytest.approx([times[1] - times[0], times[2] - times[1]])
    assert [(f["retry"], f["retries_max"]) for f in watched.of("note")] == [(1, 3), (2, 3)]


@pytest.mark.promise("T5")
async def test_a_server_that_stays_too_busy_is_given_up_by_name() -> None:
    async with calling(BUSY, BUSY, BUSY, BUSY) as talk:
        with pytest.raises(CodexOverloaded) as given_up:
            await talk.start()

    assert given_up.value == CodexOverloaded(method="turn/start")
    assert isinstance(given_up.value.__cause__, ErrorResponse)
    assert len(talk.server.asked) == 4


@pytest.mark.promise("F8")
@pytest.mark.parametrize("code", [-32600, -32602, -32603, -32000, -32002, 429])
async def test_any_other_refusal_is_final(code: int) -> None:
    watched = Watched()
    async with calling({"error": {"code": code, "message": "no"}}, watched=watched) as talk:
        with pytest.raises(ErrorResponse) as refused:
            await talk.start()

    assert (refused.value.error_code, refused.value.error_message) == (code, "no")
    assert len(talk.server.asked) == 1
    assert watched.of("note") == []


@pytest.mark.promise("F7")
@pytest.mark.parametrize(
    ("method", "params", "limit"),
    [
        ("turn/start", {}, 300.0),
        ("config/read", None, 10.0),
        ("command/exec", {"timeoutMs": 5000}, 15.0),
        ("command/exec", CommandExecParams(("ls",), timeout_ms=5000), 15.0),
        ("thread/list", {}, 30.0),
    ],
)
async def test_no_answer_is_a_timeout_of_the_method_and_never_asked_again(
    method: str, params: object, limit: float
) -> None:
    async with calling(None) as talk:
        with pytest.raises(RequestTimedOut) as late:
            await talk.calls.raw(method, params)
        waited = anyio.current_time()

    assert late.value == RequestTimedOut(method=method, limit=limit)
    assert waited == pytest.approx(limit)
    assert len(talk.server.asked) == 1


@pytest.mark.promise("F7")
async def test_the_limit_of_the_caller_goes_before_all_others() -> None:
    async with calling(None) as talk:
        with pytest.raises(RequestTimedOut) as late:
            await talk.calls.raw("turn/start", {}, timeout=0.5)

    assert late.value.limit == 0.5


async def test_the_end_of_the_connection_is_not_tried_again() -> None:
    async with calling(None) as talk:

        async def close() -> None:
            await anyio.sleep(1)
            await talk.connection.aclose()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(close)
            with pytest.raises(ConnectionClosed):
                await talk.start()

    assert len(talk.server.asked) == 1


@pytest.mark.parametrize("params", [{"a": object()}, {"a": float("nan")}, {"a": "\ud800"}])
async def test_what_cannot_be_said_is_never_sent(params: object) -> None:
    async with calling() as talk:
        for method in ("turn/start", "command/exec"):
            with pytest.raises(Unencodable):
                await talk.calls.raw(method, params)

    assert talk.server.asked == []
