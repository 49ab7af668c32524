"""Whoever sits at a session hears everything once, however often its host dies."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import anyio
import pytest
from anyio.abc import TaskGroup

from holdfast.codex import app_server
from holdfast.exec.failures import KeeperLost, OutcomeUnknown
from holdfast.host import client, supervision
from holdfast.host.client import RecordReceived
from holdfast.host.failures import HostGone, SessionClosed
from holdfast.host.model import (
    AttemptStarted,
    CloseCommand,
    EventRecorded,
    PromptCommand,
    SessionEnded,
    TurnClosed,
)
from holdfast.host.server import HostConfig, run_host
from holdfast.host.supervision import (
    HostAccess,
    Reconnected,
    Reconnecting,
    Responsive,
    SupervisionEvent,
    Unresponsive,
    WaitEnded,
    WaitingSeen,
    supervise_host,
)
from holdfast.host.turns import TurnRunner
from holdfast.runners import codex
from holdfast.runners.memory import EventScript, MemoryRunner
from holdfast.runners.model import TextCompleted, ToolStarted, TurnEnding, WaitingReported
from holdfast.world import command_of, system_processes
from tests.host.staging import Bench
from tests.journeys.stage import linux_only
from tests.runners.test_codex import playing

pytestmark = pytest.mark.anyio


class House:
    """Starts hosts of one session, each in a task of its own, and kills them."""

    def __init__(
        self,
        tmp_path: Path,
        script: EventScript,
        tasks: TaskGroup,
        runner: TurnRunner | None = None,
    ) -> None:
        self.puppet = MemoryRunner(script)
        self._runner = runner or self.puppet
        self.socket = tmp_path / "host.sock"
        self.starts = 0
        self.over = anyio.Event()  # once a host has ended
        self._tasks = tasks
        self._living = anyio.CancelScope()
        self._order = HostConfig(
            session="s1",
            directory=tmp_path,
            socket=self.socket,
            project="/p",
            draft="d1",
            runner="puppet",
        )

    async def start(self) -> None:
        self.starts += 1
        self._living = anyio.CancelScope()
        self._tasks.start_soon(self._live, self._living)

    def kill(self) -> None:
        self._living.cancel()

    async def end(self, _: Path) -> None:
        self.kill()

    async def _live(self, scope: anyio.CancelScope) -> None:
        with scope:
            await run_host(self._order, self._runner, Bench())
        self.over.set()


SCRIPT: EventScript = [[ToolStarted("t1", "run", "make"), 1e6], [TextCompleted("2", "Two")]]


async def test_a_host_that_dies_in_a_turn_is_started_again(tmp_path: Path) -> None:
    seen: list[SupervisionEvent] = []
    tasks = anyio.create_task_group()
    house = House(tmp_path, SCRIPT, tasks)
    async with tasks:
        async with supervise_host(house.socket, house.start) as seat:
            await seat.command(PromptCommand("c1", "one"))
            while not any(isinstance(each, RecordReceived) and _is_end(each, 2) for each in seen):
                news = await seat.receive()
                seen += news
                if any(isinstance(each, RecordReceived) and _is_tool(each) for each in news):
                    house.kill()
                    await seat.command(PromptCommand("c2", "two"))
        tasks.cancel_scope.cancel()

    kept = [each for each in seen if isinstance(each, RecordReceived)]
    assert [each.seq for each in kept] == list(range(1, len(kept) + 1))
    assert [each.attempt for each in seen if isinstance(each, Reconnected)] == [1, 2]
    assert [each.delay for each in seen if isinstance(each, Reconnecting)] == [0.0]
    assert [each.record.reason for each in kept if isinstance(each.record, AttemptStarted)] == [
        "",
        "its host died",
    ]
    assert (house.starts, house.puppet.heard) == (2, ["one", "two"])


@pytest.mark.promise("A7", "X13")
@pytest.mark.parametrize("is_started", [True, False])
async def test_a_start_that_nobody_knows_the_outcome_of_is_repeated(
    tmp_path: Path, is_started: bool
) -> None:
    tasks = anyio.create_task_group()
    house = House(tmp_path, SCRIPT[1:], tasks)
    asked = 0

    async def start() -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            if is_started:
                await house.start()
            raise OutcomeUnknown(method="process/start")
        if not is_started:
            await house.start()  # else the second host finds the journal locked, and ends

    async with tasks:
        async with supervise_host(house.socket, start) as seat:
            with anyio.fail_after(60):
                assert await seat.command(PromptCommand("c1", "one")) > 0
        tasks.cancel_scope.cancel()
    assert (asked, house.starts) == (2, 1)


@pytest.mark.promise("A7")
async def test_a_host_that_keeps_dying_is_given_up(tmp_path: Path) -> None:
    tasks = anyio.create_task_group()
    house = House(tmp_path, SCRIPT, tasks)
    async with tasks:
        with pytest.raises(HostGone):
            async with supervise_host(house.socket, house.start) as seat:
                while True:
                    if any(isinstance(each, Reconnected) for each in await seat.receive()):
                        house.kill()
        tasks.cancel_scope.cancel()

    assert house.starts == 4


@pytest.fixture
def is_asked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "STARTED_USUALLY", 0.0)
    monkeypatch.setattr(supervision, "DELAYS", (0.0, 0.01, 0.02))


async def at_once() -> None:
    """Wait for the end of a host that is over already."""


async def unknown() -> None:
    """Wait for the end of a host of which nobody knows any more."""
    raise KeeperLost(reason="killed")


@pytest.mark.promise("A7")
@pytest.mark.usefixtures("is_asked_at_once")
@pytest.mark.parametrize("stillborn", [1, 3])
async def test_a_host_that_dies_before_it_listens_is_started_again(
    tmp_path: Path, stillborn: int
) -> None:
    seen: list[SupervisionEvent] = []
    tasks = anyio.create_task_group()
    house = House(tmp_path, SCRIPT, tasks)
    ends = [at_once] * stillborn

    async def start() -> WaitEnded:
        if ends:
            return ends.pop()
        await house.start()
        return unknown

    async with tasks:
        async with supervise_host(house.socket, start) as seat:
            while not any(isinstance(each, Reconnected) for each in seen):
                seen += await seat.receive()
        tasks.cancel_scope.cancel()

    delays = [each.delay for each in seen if isinstance(each, Reconnecting)]
    assert (delays, house.starts) == ([0.0, 0.01, 0.02][:stillborn], 1)


@pytest.mark.promise("A7")
@pytest.mark.usefixtures("is_asked_at_once")
async def test_one_that_never_gets_so_far_is_given_up(tmp_path: Path) -> None:
    starts: list[None] = []

    async def start() -> WaitEnded:
        starts.append(None)
        return at_once

    with pytest.raises(HostGone):
        async with supervise_host(tmp_path / "host.sock", start) as seat:
            while True:
                await seat.receive()

    assert len(starts) == 1 + supervision.STARTS_MAX


async def test_what_a_host_runs_on_may_be_away_for_a_moment(tmp_path: Path) -> None:
    tasks = anyio.create_task_group()
    house = House(tmp_path, SCRIPT, tasks)
    failures = [KeeperLost(reason="killed"), KeeperLost(reason="killed")]

    async def start() -> None:
        if failures:
            raise failures.pop()
        await house.start()

    async with tasks:
        async with supervise_host(house.socket, start) as seat:
            assert await seat.command(PromptCommand("c1", "one")) > 0
        tasks.cancel_scope.cancel()

    assert house.starts == 1


async def test_whoever_sits_at_a_session_that_is_ended_does_not_take_it_up_again(
    tmp_path: Path,
) -> None:
    seen: list[SupervisionEvent] = []
    tasks = anyio.create_task_group()
    house = House(tmp_path, [[TextCompleted("1", "One")]], tasks)
    async with tasks:
        async with supervise_host(house.socket, house.start) as ann:
            await ann.command(PromptCommand("c1", "one"))
            async with supervise_host(house.socket, house.start) as bob:
                seen += await bob.receive()
                await ann.command(CloseCommand("c2"))
                with pytest.raises(SessionClosed):
                    while True:
                        seen += await bob.receive()
                with pytest.raises(SessionClosed):
                    await bob.command(PromptCommand("c3", "two"))
                assert await bob.command(CloseCommand("c4")) == len(kept_of(seen))
        tasks.cancel_scope.cancel()

    assert any(isinstance(each.record, SessionEnded) for each in kept_of(seen))
    assert house.starts == 1


async def test_who_was_slow_to_listen_hears_all_before_the_end(tmp_path: Path) -> None:
    seen: list[SupervisionEvent] = []
    tasks = anyio.create_task_group()
    house = House(tmp_path, [[TextCompleted("1", "One")]], tasks)
    async with tasks:
        async with (
            supervise_host(house.socket, house.start) as ann,
            supervise_host(house.socket, ann_only) as bob,
        ):
            await ann.command(PromptCommand("c1", "one"))
            await ann.command(CloseCommand("c2"))
            await house.over.wait()
            await anyio.wait_all_tasks_blocked()  # so that all of it waits for him
            with pytest.raises(SessionClosed):
                while True:
                    seen += await bob.receive()
        tasks.cancel_scope.cancel()

    assert {SessionEnded, TurnClosed} <= {type(each.record) for each in kept_of(seen)}


async def ann_only() -> None:
    """Start nothing: somebody else does."""


def kept_of(seen: list[SupervisionEvent]) -> list[RecordReceived]:
    return [each for each in seen if isinstance(each, RecordReceived)]


def _is_tool(kept: RecordReceived) -> bool:
    return isinstance(kept.record, EventRecorded) and isinstance(kept.record.event, ToolStarted)


def _is_end(kept: RecordReceived, turn: int) -> bool:
    record = kept.record
    return (
        isinstance(record, TurnClosed)
        and record.turn == turn
        and record.ending is TurnEnding.COMPLETED
    )


@pytest.fixture
def is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ping often, and take every pause for a sign of trouble."""
    monkeypatch.setattr(supervision, "PING_PAUSE", 0.01)
    monkeypatch.setattr(supervision, "TURN_STUCK", 0.1)


@pytest.mark.promise("A5")
@pytest.mark.usefixtures("is_stuck")
async def test_a_host_whose_turn_makes_no_progress_is_unresponsive_until_it_does(
    tmp_path: Path,
) -> None:
    seen: list[SupervisionEvent] = []
    tasks = anyio.create_task_group()
    house = House(tmp_path, [[1.0, TextCompleted("1", "One")]], tasks)
    async with tasks:
        async with supervise_host(house.socket, house.start) as seat:
            await seat.command(PromptCommand("c1", "one"))
            while Responsive() not in seen:
                seen += await seat.receive()
        tasks.cancel_scope.cancel()

    assert [each for each in seen if isinstance(each, Unresponsive | Responsive)] == [
        Unresponsive(3),
        Responsive(),
    ]


@pytest.mark.promise("A5", "A9")
@pytest.mark.usefixtures("is_stuck")
async def test_a_turn_that_waits_for_a_model_is_not_stuck(tmp_path: Path) -> None:
    """The model is named, with how long it is silent; what the host is in is another thing."""
    seen: list[SupervisionEvent] = []
    tasks = anyio.create_task_group()
    words = [WaitingReported("openai/gpt-5", 5.0 * at) for at in range(1, 9)]
    turn = [each for word in words for each in (word, 0.05)]
    house = House(tmp_path, [[*turn, TextCompleted("1", "One")]], tasks)
    async with tasks:
        async with supervise_host(house.socket, house.start) as seat:
            await seat.command(PromptCommand("c1", "one"))
            with anyio.fail_after(60):
                while not any(isinstance(each, WaitingSeen) and not each.what for each in seen):
                    seen += await seat.receive()
        tasks.cancel_scope.cancel()

    awaited = [each for each in seen if isinstance(each, WaitingSeen) and each.what]
    assert {each.what for each in awaited} == {"openai/gpt-5"}
    assert awaited[-1].seconds > awaited[0].seconds >= 5.0
    assert not [each for each in seen if isinstance(each, Unresponsive)]
    records = [each.record for each in seen if isinstance(each, RecordReceived)]
    assert not [each for each in records if "waiting" in str(each)]  # it is never kept


class CodexConverser:
    """Codex as a host has it, from a runner that tests play."""

    name = codex.NAME
    options = ()

    def __init__(self, runner: codex.CodexRunner) -> None:
        self.converse = runner.converse


@linux_only
@pytest.mark.promise("A5", "A9")
async def test_a_silent_codex_is_waited_for_and_a_stopped_one_is_unresponsive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision, "PING_PAUSE", 0.01)
    monkeypatch.setattr(supervision, "TURN_STUCK", 3.0)
    monkeypatch.setattr(codex, "WAITING_TOLD", 0.2)
    monkeypatch.setattr(app_server, "_HEALTH_LIMIT", 0.5)
    seen: list[SupervisionEvent] = []
    tasks = anyio.create_task_group()
    async with playing(tmp_path, {"until": "nothing"}) as runner, tasks:
        house = House(tmp_path, [], tasks, CodexConverser(runner))
        async with supervise_host(house.socket, house.start) as seat:
            with anyio.fail_after(90):
                await seat.command(PromptCommand("c1", "one"))
                while not any(
                    isinstance(each, WaitingSeen) and each.seconds > 5.0 for each in seen
                ):
                    seen += await seat.receive()
                waiting, pid = list(seen), app_server_in(tmp_path)
                os.kill(pid, signal.SIGSTOP)
                while not any(isinstance(each, Unresponsive) for each in seen):
                    seen += await seat.receive()
                os.kill(pid, signal.SIGCONT)
                while Responsive() not in seen:
                    seen += await seat.receive()
        tasks.cancel_scope.cancel()

    assert {each.what for each in waiting if isinstance(each, WaitingSeen)} <= {"", "codex/fake"}
    assert not [each for each in waiting if isinstance(each, Unresponsive)]


def app_server_in(directory: Path) -> int:
    (pid,) = (
        each.pid
        for each in system_processes()
        if f"{directory}/scenario.json" in command_of(each.pid)
    )
    return pid


@pytest.mark.promise("A5")
async def test_a_listener_that_never_greets_is_unresponsive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "HELLO_TIMEOUT", 0.01)
    path = tmp_path / "host.sock"
    seen: list[SupervisionEvent] = []

    async def start() -> None:
        raise AssertionError("somebody listens, so no host is started")

    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(path))
        silent.listen()
        with anyio.fail_after(60):
            async with supervise_host(path, start) as seat:
                while not seen:
                    seen += await seat.receive()

    assert seen == [Unresponsive(supervision.MISSES_MAX)]


@pytest.mark.promise("A5", "A7")
@pytest.mark.usefixtures("is_stuck")
async def test_an_unresponsive_host_is_restarted_on_request(tmp_path: Path) -> None:
    seen: list[SupervisionEvent] = []
    tasks = anyio.create_task_group()
    house = House(tmp_path, SCRIPT, tasks)
    async with tasks:
        reach = HostAccess(end=house.end)
        async with supervise_host(house.socket, house.start, reach=reach) as seat:
            await seat.command(PromptCommand("c1", "one"))
            while not any(isinstance(each, Unresponsive) for each in seen):
                seen += await seat.receive()
            await seat.restart()
            await seat.command(PromptCommand("c2", "two"))
            while not any(isinstance(each, RecordReceived) and _is_end(each, 2) for each in seen):
                seen += await seat.receive()
        tasks.cancel_scope.cancel()

    assert [each.delay for each in seen if isinstance(each, Reconnecting)] == [0.0]
    assert (house.starts, house.puppet.heard) == (2, ["one", "two"])


@pytest.mark.promise("A7")
async def test_a_host_that_was_given_up_can_be_restarted(tmp_path: Path) -> None:
    tasks = anyio.create_task_group()
    house = House(tmp_path, SCRIPT, tasks)
    async with tasks:
        async with supervise_host(
            house.socket, house.start, reach=HostAccess(end=house.end)
        ) as seat:
            with pytest.raises(HostGone):
                while True:
                    if any(isinstance(each, Reconnected) for each in await seat.receive()):
                        house.kill()
            with pytest.raises(HostGone):
                await seat.command(PromptCommand("c1", "one"))
            await seat.restart()
            await seat.command(PromptCommand("c1", "one"))
        tasks.cancel_scope.cancel()

    assert house.starts == 5
