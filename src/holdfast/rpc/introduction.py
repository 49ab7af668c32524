"""Say hello: the first exchange on every connection of our own protocols."""

from __future__ import annotations

from holdfast.rpc.connection import Connection
from holdfast.rpc.core.handshake import Gate, Hello, Welcome, agree
from holdfast.rpc.dispatch import Handler

HELLO = "hello"


def welcoming(ours: Hello, gate: Gate) -> Handler[Hello]:
    """Serve the introduction: agree on a version, then open the gate."""

    async def welcome(theirs: Hello) -> Welcome:
        agreed = agree(ours, theirs)
        gate.open = True
        return Welcome(agreed, ours)

    return Handler(Hello, welcome)


async def introduce(connection: Connection, ours: Hello, gate: Gate, *, timeout: float) -> Welcome:
    """Introduce ourselves, and open our gate once both sides have a version in common."""
    welcome = await connection.request(gate.method, ours, timeout=timeout, result=Welcome)
    gate.open = True
    return welcome
