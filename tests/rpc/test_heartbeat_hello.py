"""Two programs of different versions meet over a connection."""

from __future__ import annotations

import pytest

from holdfast.rpc.connection import Connection, ConnectionConfig
from holdfast.rpc.dispatch import Handler, Service
from holdfast.rpc.failures import HandshakeMissing, HandshakeRepeated, VersionRefused
from holdfast.rpc.heartbeat import HELLO, hello_handler, send_hello
from holdfast.rpc.peer import HandshakeGate, Hello, Welcome
from holdfast.rpc.transports.memory import pair

pytestmark = pytest.mark.anyio


async def work(_params: object) -> object:
    return "done"


def serving(hello: Hello) -> ConnectionConfig:
    gate = HandshakeGate(method=HELLO)
    handlers = {HELLO: hello_handler(hello, gate), "work": Handler(object, work)}
    return ConnectionConfig(service=Service(handlers), serves=gate)


@pytest.mark.parametrize(("newest", "agreed"), [(1, 1), (2, 2), (3, 2)])
async def test_an_older_or_newer_client_agrees_on_what_both_speak(newest: int, agreed: int) -> None:
    ours, theirs = pair()
    gate, server = HandshakeGate(method=HELLO), Hello("host", 1, 2, name="server")
    async with (
        Connection(ours, ConnectionConfig(calls=gate)) as us,
        Connection(theirs, serving(server)),
    ):
        with pytest.raises(HandshakeMissing):
            await us.request("work", timeout=1)
        welcome = await send_hello(us, Hello("host", 1, newest), gate, timeout=1)

        assert welcome == Welcome(agreed, server)
        assert await us.request("work", timeout=1, result=str) == "done"
        with pytest.raises(HandshakeRepeated):
            await send_hello(us, Hello("host", 1, newest), gate, timeout=1)


async def test_versions_that_never_meet_are_refused_and_nothing_is_served() -> None:
    ours, theirs = pair()
    gate = HandshakeGate(method=HELLO)
    async with Connection(ours) as us, Connection(theirs, serving(Hello("host", 5, 6))):
        with pytest.raises(VersionRefused):
            await send_hello(us, Hello("host", 1, 4), gate, timeout=1)
        with pytest.raises(HandshakeMissing):
            await us.request("work", timeout=1)
        assert not gate.open
