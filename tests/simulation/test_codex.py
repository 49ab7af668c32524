"""Codex over connections that fail and servers that misbehave: every turn ends, nothing leaks."""

from __future__ import annotations

import asyncio
import gc
import math
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio.abc import TaskGroup

from holdfast.codex import AppServer
from holdfast.codex.failures import CodexInitRejected, CodexInitTimeout, CodexStartupFailed
from holdfast.codex.subscriptions import Router, SubscriptionReader, ThreadSubscription
from holdfast.rpc import Connection, Subscription
from holdfast.rpc.transports.memory import MemoryTransport, pair
from holdfast.rpc.waiter_loop import Waiter
from holdfast.telemetry import Telemetry
from holdfast.world.testing import ManualClock, SeededRandomSource
from tests.plugins.seeds import Sweep
from tests.simulation.codex_server import SimulatedServer
from tests.simulation.codex_user import User
from tests.simulation.codex_world import World
from tests.simulation.harness import Trial, simulate
from tests.simulation.link import Nemesis

ROOT = Path(__file__).parents[2]
USERS, TURNS = 5, 5  # at once, and how many turns each of them has
CONNECTIONS_MAX = 40
CALM = 3_600.0  # virtual seconds in which everything is done once nobody does harm
SOON = 600.0  # virtual seconds in which slow readers have read what came before the end
LONG = range(1_000, 1_400)
assert len(LONG) * USERS * TURNS == 10_000
KINDS = (SubscriptionReader, ThreadSubscription, Router, Connection, Subscription, Waiter)
NOT_OPENED = (CodexInitRejected, CodexInitTimeout, CodexStartupFailed)


@dataclass
class Tally:
    """How much was simulated."""

    seeds: int = 0
    turns: int = 0


async def sessions(tally: Tally, trial: Trial) -> None:
    """Use Codex over troubled connections, then over a calm one that brings all to an end."""
    census = Census()
    world = World(trial)
    tally.turns += await use(world, census)
    tally.seeds += 1
    assert world.objections == []
    assert asyncio.all_tasks() == {asyncio.current_task()}
    del world
    assert census.newcomers(*KINDS) == []


class Census:
    """Knows who lives since it was taken: other tests may have left someone."""

    def __init__(self) -> None:
        self._elders = _alive(*KINDS)

    def newcomers(self, *kinds: type) -> list[object]:
        elders = {id(elder) for elder in self._elders}
        return [it for it in _alive(*kinds) if id(it) not in elders]


def _alive(*kinds: type) -> list[object]:
    gc.collect()
    return [it for it in gc.get_objects() if isinstance(it, kinds)]


async def use(world: World, census: Census) -> int:
    """Have every user have their turns; return how many there were."""
    users = [User(world, f"user-{number}", TURNS) for number in range(USERS)]
    async with anyio.create_task_group() as machine:
        server, is_calm = SimulatedServer(machine, world.trial, world.store, world), False
        while not is_calm:
            world.connections, world.ended = world.connections + 1, math.inf
            turns_left = sum(user.turns_left for user in users)
            is_calm = turns_left <= USERS or world.connections > CONNECTIONS_MAX
            if server.is_dead:
                server = SimulatedServer(machine, world.trial, world.store, world)
            if is_calm:
                server.behave()
            await session(world, users, server, census if is_calm else None)
        machine.cancel_scope.cancel()
    world.codex = None
    return sum(TURNS - user.turns_left for user in users)


async def session(
    world: World, users: list[User], server: SimulatedServer, calm: Census | None
) -> None:
    """One connection from its beginning to its end: a calm one, when a census is to be held."""
    near, far = pair()
    async with anyio.create_task_group() as serving:
        serving.start_soon(server.serve, far)
        async with anyio.create_task_group() as harm:
            if calm is None:
                harm.start_soon(trouble, world, server, near, far)
            async with anyio.create_task_group() as people:
                try:
                    async with AppServer.connect(
                        transport=near,
                        approvals=world.decide,
                        telemetry=Telemetry([], clock=ManualClock()),
                        chance=SeededRandomSource(world.trial.seed),
                    ) as world.codex:
                        await converse(world, world.codex, users, people, calm)
                except NOT_OPENED as failure:
                    world.trial.note("not opened", failure.code)
                people.cancel_scope.deadline = anyio.current_time() + SOON
            assert not people.cancel_scope.cancelled_caught, "someone waits for what is over"
            harm.cancel_scope.cancel()
        await near.aclose()


async def converse(
    world: World, codex: AppServer, users: list[User], people: TaskGroup, calm: Census | None
) -> None:
    """Let everyone use the connection until it ends, or leave it while they still do."""
    finished = anyio.Event()

    async def all_use() -> None:
        async with anyio.create_task_group() as using:
            for user in users:
                user.is_patient = calm is None
                using.start_soon(user.use, codex)
        finished.set()

    people.start_soon(world.note_end, codex)
    people.start_soon(all_use)
    if calm is not None:
        with anyio.fail_after(CALM):
            await finished.wait()
        assert calm.newcomers(SubscriptionReader, Waiter) == []
    else:
        people.start_soon(world.echo, codex)
        with anyio.move_on_after(world.trial.chance.choice([10.0, math.inf, math.inf])):
            await finished.wait()


async def trouble(
    world: World, server: SimulatedServer, near: MemoryTransport, far: MemoryTransport
) -> None:
    """Do harm to the link and to the server, now and then or all the time."""
    chance = world.trial.chance
    nemesis = Nemesis(chance, near, far, more=[server.exit, server.stop, server.stop])
    await nemesis.trouble(
        lasting=chance.choice([5.0, 60.0, 600.0, 3_000.0]),
        pause_longest=chance.choice([2.0, 20.0, 200.0]),
        told=lambda harm: world.trial.note("harm", harm),
    )


def swept(sweep: Sweep, seeds: range) -> None:
    tally = Tally()
    sweep(partial(sessions, tally), seeds)
    assert tally.turns == tally.seeds * USERS * TURNS


@pytest.mark.promise("F2", "F3", "F15", "F19", "F21", "F26")
def test_every_turn_ends_by_name_whatever_fails(sweep: Sweep) -> None:
    swept(sweep, range(2))


@pytest.mark.long
@pytest.mark.promise("F2", "F3", "F15", "F19", "F21", "F26")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", LONG[::100])
def test_every_turn_of_ten_thousand_ends_by_name(sweep: Sweep, first: int) -> None:
    swept(sweep, range(first, first + 100))


def test_a_seed_decides_all_that_happens() -> None:
    code = (
        "from functools import partial\n"
        "from tests.simulation.harness import simulate\n"
        "from tests.simulation.test_codex import Tally, sessions\n"
        "print([simulate(partial(sessions, Tally()), seed) for seed in range(1)])"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            check=True,
            capture_output=True,
        ).stdout
        for hash_seed in ("1", "2")
    }

    assert len(told) == 1
    assert simulate(partial(sessions, Tally()), 4) != simulate(partial(sessions, Tally()), 5)
