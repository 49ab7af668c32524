"""A nemesis: it troubles the links between two transports, as its seed decides."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import anyio

from holdfast.rpc.transports.memory import MemoryTransport

JUNK = (b"{", b"\xff\xfe", b"[]", b"null", b'{"id":77777,"result":1}', b'{"id":null,"result":1}')


class Nemesis:
    """Delays, jitter, stalls, junk, doubled answers and cuts, also in the middle of a message."""

    def __init__(
        self,
        chance: random.Random,
        one: MemoryTransport,
        two: MemoryTransport,
        *,
        more: Sequence[Callable[[], str]] = (),
    ) -> None:
        self._chance = chance
        self._ends = (one, two)
        self._faults: list[Callable[[], str]] = [
            self._jitter,
            self._jitter,
            self._stall,
            self._junk,
            self._double_answers,
            self._cut,
            self._cut_mid_message,
            *more,
        ]

    async def trouble(
        self, *, lasting: float, told: Callable[[str], None], pause_longest: float = 2.0
    ) -> None:
        """Do harm now and then for some seconds, then cut the connection for good."""
        with anyio.move_on_after(lasting):
            while True:
                told(self._chance.choice(self._faults)())
                await anyio.sleep(self._chance.uniform(0.0, pause_longest))
        told(self._cut())

    def _jitter(self) -> str:
        for end in self._ends:
            self._slow_down(end, self._chance.choice([0.0, 0.001, 0.3, 1.5]))
        return "jitter"

    def _stall(self) -> str:
        self._slow_down(self._chance.choice(self._ends), 1_000.0)
        return "stall"

    def _junk(self) -> str:
        junk = self._chance.choice(JUNK)
        self._chance.choice(self._ends).outgoing.tamper = lambda message: (junk, message)
        return "junk"

    def _double_answers(self) -> str:
        self._chance.choice(self._ends).outgoing.tamper = lambda message: (
            (message, message) if b'"result"' in message else (message,)
        )
        return "double"

    def _cut(self) -> str:
        self._chance.choice(self._ends).cut()
        return "cut"

    def _cut_mid_message(self) -> str:
        end = self._chance.choice(self._ends)
        end.outgoing.cut_after = self._chance.randrange(1, 2_000)
        return "cut soon"

    def _slow_down(self, end: MemoryTransport, delay: float) -> None:
        end.outgoing.delay = delay
