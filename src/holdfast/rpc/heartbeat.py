"""Notice that the other side no longer answers, even while the connection stands."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

import anyio

from holdfast.failures import Failure
from holdfast.rpc.connection import Connection
from holdfast.rpc.dispatch import Handler
from holdfast.rpc.peer import HandshakeGate, Hello, Welcome, agree


@dataclass(frozen=True, slots=True)
class HeartbeatPolicy:
    """How often to ask, how long to wait for an answer, and how many misses mean trouble."""

    interval: float = 5.0
    patience: float = 2.0
    misses_max: int = 3


@dataclass(frozen=True, slots=True)
class HeartbeatResult:
    """One ping's outcome: how many in a row were missed, and whether that is too many."""

    misses: int
    responsive: bool
    pulse: object = None


def _any_pulse(_pulse: object) -> bool:
    return True


async def heartbeat(
    connection: Connection,
    rhythm: HeartbeatPolicy,
    *,
    counts: Callable[[object], bool] = _any_pulse,
    method: str = "ping",
) -> AsyncGenerator[HeartbeatResult]:
    """Ping for ever and report every outcome; ends by raising what ended the connection.

    An answer that `counts` rejects is a miss too: a reader may answer for a loop that is stuck.
    """
    misses = 0
    while True:
        pulse: object = None
        try:
            pulse = await connection.request(
                method, timeout=rhythm.patience, result=dict[str, object]
            )
            misses = 0 if counts(pulse) else misses + 1
        except Failure:
            if connection.failure is not None:
                raise
            misses += 1
        yield HeartbeatResult(misses, misses < rhythm.misses_max, pulse)
        await anyio.sleep(rhythm.interval)


HELLO = "hello"


def hello_handler(ours: Hello, gate: HandshakeGate) -> Handler[Hello]:
    """Return the handler of the handshake: it agrees on a version, then opens the gate."""

    async def welcome(theirs: Hello) -> Welcome:
        agreed = agree(ours, theirs)
        gate.open = True
        return Welcome(agreed, ours)

    return Handler(Hello, welcome)


async def send_hello(
    connection: Connection, ours: Hello, gate: HandshakeGate, *, timeout: float
) -> Welcome:
    """Send our hello; opens the gate once both sides have a version in common."""
    welcome = await connection.request(gate.method, ours, timeout=timeout, result=Welcome)
    gate.open = True
    return welcome
