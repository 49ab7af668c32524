"""A client of a simulated exec-server, over links that fail in every way."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

import anyio
import pytest

from holdfast.exec.client.client import Client
from holdfast.exec.client.process import Process
from holdfast.exec.client.recovery import RecoveryPolicy
from holdfast.exec.failures import (
    OutcomeUnknown,
    RecoveryTimedOut,
    ReplayGap,
    SessionExpired,
)
from holdfast.exec.model import ClientState, Closed, Command, Event
from holdfast.failures import Failure
from holdfast.rpc import HeartbeatPolicy
from tests.plugins.seeds import Sweep
from tests.simulation.exec_server import SimProcess, SimServer, Traits
from tests.simulation.harness import Trial

POLICY = RecoveryPolicy(window=25.0, settled=2.0, answer_longest=4.0)
RHYTHM = HeartbeatPolicy(interval=1.0, patience=1.0, misses_max=2)
TROUBLE = 30.0
CALM = 200.0  # virtual seconds in which everything is done once the links are well
FOR_GOOD = (RecoveryTimedOut, SessionExpired)


@dataclass
class User:
    """Starts processes, writes to them, follows them to their close, and remembers all of it."""

    trial: Trial
    client: Client
    got: dict[str, list[Event]] = field(default_factory=dict[str, list[Event]])
    accepted: dict[str, list[bytes]] = field(default_factory=dict[str, list[bytes]])
    ends: dict[str, Failure] = field(default_factory=dict[str, Failure])
    unstarted: dict[str, Failure] = field(default_factory=dict[str, Failure])
    continued: set[str] = field(default_factory=set[str])

    async def work(self, name: str) -> None:
        chance = self.trial.chance
        await anyio.sleep(chance.uniform(0.0, TROUBLE))
        is_cat = chance.random() < 0.5
        argv = ("cat", "10000") if is_cat else ("print", str(chance.choice([3, 30, 80])))
        command = Command(argv=argv, cwd="/", env={}, has_stdin=is_cat)
        try:
            process = await self.client.start(
                command, process_id=name, continue_if_started=chance.random() < 0.5
            )
        except Failure as failure:
            self.trial.note(name, failure.code)
            self.unstarted[name] = failure
            return
        if process.was_continued:
            self.continued.add(name)
        async with anyio.create_task_group() as tasks:
            if is_cat:
                tasks.start_soon(self._write, process)
            await self._follow(process)

    async def _write(self, process: Process) -> None:
        """Write ten lines, then end the process; that its end is unknown once is no excuse."""
        sent = self.accepted.setdefault(process.id, [])
        try:
            for number in range(10):
                await process.write(b"%s says %d\n" % (process.id.encode(), number))
                sent.append(b"%s says %d\n" % (process.id.encode(), number))
                await anyio.sleep(self.trial.chance.choice([0.0, 0.1, 2.0]))
            while process.status is None:
                with suppress(OutcomeUnknown):
                    await process.terminate()
                    await process.wait()
        except Failure as failure:
            self.trial.note(process.id, "write", failure.code)

    async def _follow(self, process: Process) -> None:
        got = self.got.setdefault(process.id, [])
        try:
            while batch := await process.receive():
                got += batch
                if self.trial.chance.random() < 0.1:  # a slow reader
                    await anyio.sleep(self.trial.chance.choice([0.1, 5.0]))
        except Failure as failure:
            self.ends[process.id] = failure
        self.trial.note(process.id, len(got))


class Trouble:
    """Does harm to the server and to whatever link there is, as chance has it."""

    def __init__(self, trial: Trial, server: SimServer, *, loses_state: bool) -> None:
        self._trial, self._chance, self._server = trial, trial.chance, server
        self._faults = [
            self._cut,
            self._cut_soon,
            self._stall,
            self._jitter,
            self._refuse,
            self._hang,
        ]
        self._faults += [lambda: server.restart(keeps_state=True)]
        if loses_state:
            self._faults += [lambda: server.restart(keeps_state=False)]

    async def make(self) -> None:
        with anyio.move_on_after(TROUBLE):
            while True:
                await anyio.sleep(self._chance.expovariate(0.5))
                self._server.refuses = self._server.hangs = False
                fault = self._chance.choice(self._faults)
                fault()
                self._trial.note(fault.__name__)
        self._server.refuses = self._server.hangs = False

    def _cut(self) -> None:
        if self._server.links:
            self._server.links[-1][0].cut()

    def _cut_soon(self) -> None:
        if self._server.links:
            end = self._chance.choice(self._server.links[-1])
            end.outgoing.cut_after = self._chance.randrange(1, 3_000)

    def _stall(self) -> None:
        """Half open, or a black hole: nothing arrives any more, and nobody is told."""
        if self._server.links:
            ends = self._server.links[-1]
            for end in self._chance.choice([ends, ends[:1], ends[1:]]):
                end.outgoing.delay = 10_000.0

    def _jitter(self) -> None:
        if self._server.links:
            for end in self._server.links[-1]:
                end.outgoing.delay = self._chance.choice([0.0, 0.01, 0.3])

    def _refuse(self) -> None:
        self._server.refuses = True

    def _hang(self) -> None:
        self._server.hangs = True


def check(server: SimServer, user: User) -> None:
    """Every line once and in order, to the close or to a failure that says why not."""
    truth: dict[str, SimProcess] = {each.id: each for each in server.all_processes}
    assert len(truth) == len(server.all_processes), "something was started twice"
    client_failure = user.client.failure
    for name, got in user.got.items():
        process = truth[name]
        assert got == process.events[: len(got)]
        end = user.ends.get(name)
        if end is None:
            assert isinstance(got[-1], Closed)
        elif isinstance(end, ReplayGap):
            assert end.expected <= process.dropped, "a gap where there is none"
            assert not server.traits.is_ours, "it was told what was taken"
        else:
            assert end == client_failure
    for name, accepted in user.accepted.items():
        written = list(truth[name].written.values())
        assert written[: len(accepted)] == accepted
        assert len(set(written)) == len(written) <= len(accepted) + 1
    for failure in user.unstarted.values():
        assert isinstance(failure, OutcomeUnknown) or failure == client_failure
    if client_failure is None:
        known = user.got.keys()
        assert [each.id for each in server.running() if each.id not in known] == []


async def live(trial: Trial, traits: Traits, *, loses_state: bool = False) -> None:
    """Trouble, then calm: all work ends, all of it is right, and nothing is left."""
    async with anyio.create_task_group() as backstage:
        server = SimServer(trial.chance, backstage, traits)
        with anyio.fail_after(TROUBLE + CALM):
            async with Client(
                server.dial, policy=POLICY, heartbeat_policy=RHYTHM, unread_bytes_max=40
            ) as client:
                user = User(trial, client)
                async with anyio.create_task_group() as tasks:
                    for number in range(5):
                        tasks.start_soon(user.work, f"p{number}")
                    await Trouble(trial, server, loses_state=loses_state).make()
                trial.note(client.state.value)
                assert client.state is ClientState.FAILED or client.failure is None
                assert client.failure is None or isinstance(client.failure, FOR_GOOD)
                check(server, user)
        backstage.cancel_scope.cancel()


async def some_world(trial: Trial) -> None:
    """Our server or Codex's: with pages, takeover and state, or without; forgetful or not."""
    chance = trial.chance
    delay = chance.choice([0.01, 1.0])
    if trial.seed % 2:
        retained = chance.choice([1000, 1000, 10])
        await live(trial, Traits(retained_max=retained, start_delay=delay))
    else:
        retained = chance.choice([1000, 20])
        traits = Traits(is_ours=False, takeover=False, retained_max=retained, start_delay=delay)
        await live(trial, traits, loses_state=chance.random() < 0.2)


@pytest.mark.promise("X1", "X2", "X3", "X4", "X5", "X6", "X7", "X8")
def test_every_line_arrives_once_and_in_order(sweep: Sweep) -> None:
    sweep(some_world)


@pytest.mark.long
@pytest.mark.promise("X1", "X2", "X3", "X4", "X5", "X6", "X7", "X8")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", range(1_000, 11_000, 1_000))
def test_every_line_arrives_once_in_ten_thousand_worlds(sweep: Sweep, first: int) -> None:
    sweep(some_world, range(first, first + 1_000))
