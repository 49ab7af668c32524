"""Two peers over links that fail: first nothing goes wrong twice, then everything goes right."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import anyio
import pytest

from holdfast.failures import Action, Failure, Kind
from holdfast.rpc.connection import Connection, ConnectionConfig
from holdfast.rpc.dispatch import Handler, Service
from holdfast.rpc.failures import (
    ConnectionClosed,
    ConnectionLost,
    RequestTimedOut,
    SubscriberDropped,
    TooManyRequests,
)
from holdfast.rpc.peer import PeerLimits
from holdfast.rpc.subscription import Subscription
from holdfast.rpc.transports.memory import MemoryTransport, pair
from tests.plugins.seeds import Sweep
from tests.simulation.harness import Trial
from tests.simulation.link import Nemesis

ENDS = (ConnectionLost, ConnectionClosed, RequestTimedOut, TooManyRequests)
CALM = 60.0  # virtual seconds in which everything is done once the links are well
MOMENT = 1e-6


class Refused(
    Failure,
    code="SIMULATED_REFUSAL",
    kind=Kind.DENIED,
    title="Refused",
    user_message="{token} was refused; ask for another.",
    actions=(Action.CANCEL,),
):
    """The desk refuses every third token."""

    token: int


@dataclass
class Side:
    """One peer: what it serves, asks, tells and hears, and whether that is as it must be."""

    trial: Trial
    name: str
    served: dict[int, int] = field(default_factory=dict[int, int])
    answered: list[int] = field(default_factory=list[int])
    told: int = 0
    heard: list[int] = field(default_factory=list[int])
    ended: float = math.inf  # when its connection did

    async def serve(self, params: dict[str, int]) -> object:
        token = params["token"]
        self.served[token] = self.served.get(token, 0) + 1
        await anyio.sleep(self.trial.chance.choice([0.0, 0.01, 0.5, 8.0]))
        if token % 3 == 0:
            raise Refused(token=token)
        return token

    def terms(self, *, in_flight_max: int) -> ConnectionConfig:
        service = Service({"take": Handler(dict[str, int], self.serve)}, running_max=4)
        return ConnectionConfig(service=service, limits=PeerLimits(in_flight_max=in_flight_max))

    async def note_end(self, connection: Connection) -> None:
        self.trial.note(self.name, "ended", (await connection.wait_ended()).code)
        self.ended = anyio.current_time()

    async def ask(self, connection: Connection, token: int, timeout: float) -> None:
        """Ask once: it ends in time, and with an answer to this very question."""
        began = anyio.current_time()
        try:
            got = await connection.request("take", {"token": token}, timeout=timeout, result=int)
        except Refused as refusal:
            got = refusal.token
        except ENDS as end:
            self.trial.note(self.name, token, end.code)
            got = None
        now = anyio.current_time()
        assert now <= began + timeout + MOMENT
        assert now <= max(began, self.ended) + MOMENT, "it outlived its connection"
        assert got in {None, token}
        if got is not None:
            self.answered.append(token)
            self.trial.note(self.name, token)

    async def ask_on(self, connection: Connection, first: int) -> None:
        """Ask again and again until the connection ends; sometimes lose interest half way."""
        chance = self.trial.chance
        for token in range(first, first + 20):
            with anyio.move_on_after(chance.choice([0.05, 1.0, 100.0, 100.0])):
                await self.ask(connection, token, chance.choice([0.2, 2.0, 20.0]))
            if connection.failure is not None:
                return
            await anyio.sleep(chance.choice([0.0, 0.1]))

    async def tell(self, connection: Connection, count: int) -> None:
        try:
            for _ in range(count):
                self.told += 1
                await connection.notify("news", {"number": self.told})
                await anyio.sleep(self.trial.chance.choice([0.0, 0.0, 0.2]))
        except ENDS:
            pass

    async def hear(self, news: Subscription) -> None:
        with news:
            try:
                while True:
                    for notification in await news.receive():
                        if notification.method == "news":
                            number = int(bytes(notification.params).strip(b'{"number: }'))
                            self.heard.append(number)
            except (*ENDS, SubscriberDropped) as end:
                self.trial.note(self.name, "heard", len(self.heard), end.code)


async def converse(
    trial: Trial, sides: tuple[Side, Side], ends: tuple[MemoryTransport, MemoryTransport]
) -> None:
    """Both sides ask, tell and hear until the nemesis has cut the connection."""
    nemesis = Nemesis(trial.chance, *ends)
    one, two = sides
    async with (
        Connection(ends[0], one.terms(in_flight_max=2)) as left,
        Connection(ends[1], two.terms(in_flight_max=2)) as right,
        anyio.create_task_group() as tasks,
    ):
        for side, connection in ((one, left), (two, right)):
            tasks.start_soon(side.hear, connection.subscribe())
            tasks.start_soon(side.tell, connection, 50)
            for caller in range(3):
                tasks.start_soon(side.ask_on, connection, 100 * caller)
            tasks.start_soon(side.note_end, connection)
        await nemesis.trouble(lasting=trial.chance.uniform(0.0, 30.0), told=trial.note)
        await anyio.sleep(MOMENT)
        assert max(one.ended, two.ended) < math.inf


def check_safety(teller: Side, hearer: Side) -> None:
    """Nothing was done twice, answered falsely, told twice or out of order."""
    assert all(count == 1 for count in hearer.served.values())
    assert len(set(teller.answered)) == len(teller.answered)
    assert set(teller.answered) <= hearer.served.keys()
    assert hearer.heard == list(range(1, len(hearer.heard) + 1))
    assert len(hearer.heard) <= teller.told


async def finish(trial: Trial, sides: tuple[Side, Side]) -> None:
    """Over a link that is well, everything that is asked and told arrives, and soon."""
    ends = pair()
    one, two = sides
    for end in ends:
        end.outgoing.delay = 0.01
    ours, theirs = one.terms(in_flight_max=8), two.terms(in_flight_max=8)
    async with Connection(ends[0], ours) as left, Connection(ends[1], theirs) as right:
        with anyio.fail_after(CALM):
            async with anyio.create_task_group() as listeners:
                listeners.start_soon(one.hear, left.subscribe())
                listeners.start_soon(two.hear, right.subscribe())
                async with anyio.create_task_group() as tasks:
                    for side, connection in ((one, left), (two, right)):
                        tasks.start_soon(side.tell, connection, 50)
                        for token in range(8):
                            tasks.start_soon(side.ask, connection, token, CALM)
                await anyio.sleep(1.0)
                await left.aclose()


async def two_peers(trial: Trial) -> None:
    """Troubled conversations, checked for safety, then a calm one, checked for liveness."""
    for _ in range(2):
        sides = Side(trial, "one"), Side(trial, "two")
        await converse(trial, sides, pair())
        check_safety(*sides)
        check_safety(*reversed(sides))
    sides = Side(trial, "one"), Side(trial, "two")
    await finish(trial, sides)
    for teller, hearer in (sides, sides[::-1]):
        check_safety(teller, hearer)
        assert sorted(teller.answered) == list(range(8))
        assert hearer.heard == list(range(1, 51))


@pytest.mark.promise("F7", "F10", "F19", "F20")
def test_two_peers_over_a_lossy_link(sweep: Sweep) -> None:
    sweep(two_peers)


@pytest.mark.long
@pytest.mark.promise("F7", "F10", "F19", "F20")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", range(1_000, 11_000, 1_000))
def test_two_peers_over_ten_thousand_lossy_links(sweep: Sweep, first: int) -> None:
    sweep(two_peers, range(first, first + 1_000))
