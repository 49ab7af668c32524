"""A session under hosts that die, links that are cut and a disk that crashes: nothing is lost."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import anyio
import pytest

from holdfast.failures import Failure
from holdfast.host.client import RecordReceived
from holdfast.host.failures import HostGone, SessionClosed
from holdfast.host.model import (
    AbortCommand,
    AnswerCommand,
    AnyRecord,
    CloseCommand,
    EventRecorded,
    HostCommand,
    PromptCommand,
    PromptQueued,
    PublicationRecorded,
    QuestionAnswered,
    SessionEnded,
    SteerCommand,
    TurnAborted,
    TurnBegun,
    TurnClosed,
)
from holdfast.host.protocol import ClientRole
from holdfast.host.session import SessionPhase, SessionState, fold
from holdfast.host.supervision import HostSupervisor
from holdfast.runners.model import QuestionAsked, TurnEnding
from tests.plugins.seeds import Sweep
from tests.simulation.harness import Trial
from tests.simulation.host_world import World

TROUBLE = 120.0  # virtual seconds
CALM = 100_000.0  # in which everything is done once nothing goes wrong any more
SAMPLE = range(4)
ALL = range(500)


class Person:
    """Sits at the session, sees everything, and asks for things, each until it is answered."""

    def __init__(self, world: World, name: str, role: ClientRole) -> None:
        self._world, self._name, self._role = world, name, role
        self._chance = world.trial.chance
        self.seen: list[RecordReceived] = []
        self.done: dict[str, int] = {}
        self.refused: dict[str, str] = {}
        self.asked: list[QuestionAsked] = []

    async def attend(self) -> None:
        """Stay, and come again whenever the host is given up."""
        while True:
            with suppress(HostGone):
                async with self._world.seated(self._role, len(self.seen)) as seat:
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(self._command, seat)
                        await self._watch(seat, tasks.cancel_scope)
            await anyio.sleep(20.0)

    async def _watch(self, seat: HostSupervisor, scope: anyio.CancelScope) -> None:
        leaves = self._chance.random() < 0.3 and anyio.current_time() < TROUBLE
        with anyio.move_on_after(self._chance.uniform(0.0, 60.0) if leaves else None):
            while True:
                try:
                    news = await seat.receive()
                except (HostGone, SessionClosed):
                    if self._chance.random() < 0.5:
                        break
                    await seat.restart()
                    continue
                self.seen += [each for each in news if isinstance(each, RecordReceived)]
                self.asked += [
                    each.record.event
                    for each in news
                    if isinstance(each, RecordReceived)
                    and isinstance(each.record, EventRecorded)
                    and isinstance(each.record.event, QuestionAsked)
                ]
        scope.cancel()

    async def _command(self, seat: HostSupervisor) -> None:
        if self._role is ClientRole.WATCH:
            return
        while anyio.current_time() < TROUBLE:
            await anyio.sleep(self._chance.choice([0.0, 0.1, 2.0, 20.0]))
            await self._give(seat, self._next())

    async def _give(self, seat: HostSupervisor, command: HostCommand) -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(self._chance.choice([1, 1, 2])):
                tasks.start_soon(self._say, seat, command)

    async def _say(self, seat: HostSupervisor, command: HostCommand) -> None:
        with suppress(HostGone, SessionClosed):  # whether it was done, the records say
            try:
                self.done[command.id] = await seat.command(command)
            except (HostGone, SessionClosed):
                raise
            except Failure as failure:
                self.refused[command.id] = failure.code
            self._world.trial.note(self._name, command.id, self.refused.get(command.id))

    def _next(self) -> HostCommand:
        id_ = f"{self._name}-{len(self.done) + len(self.refused)}-{self._chance.randrange(10**6)}"
        if self.asked and self._chance.random() < 0.7:
            question = self.asked.pop(0).question
            return AnswerCommand(id_, question, self._chance.choice(["yes", "no"]))
        return self._chance.choice(
            [
                PromptCommand(id_, f"do {id_}"),
                PromptCommand(id_, f"do {id_}", is_in_place=True),
                SteerCommand(id_, f"mind {id_}"),
                AbortCommand(id_),
                CloseCommand(id_)
                if self._chance.random() < 0.2
                else PromptCommand(id_, f"do {id_}"),
            ]
        )


async def harm(world: World) -> None:
    """Do what goes wrong in the world, for a while."""
    chance = world.trial.chance
    while anyio.current_time() < TROUBLE:
        await anyio.sleep(chance.choice([0.01, 0.3, 3.0, 15.0]))
        world.check_fold()
        what = chance.choice(["cut", "cut all", "kill", "power", "power soon", "full", "room"])
        world.trial.note(what)
        match what:
            case "cut" | "cut all" if world.host is not None:
                world.host.cut(0.4 if what == "cut" else 1.0)
            case "kill":
                world.kill()
            case "power":
                world.power_lost()
            case "power soon":
                world.lose_power_soon()
            case _:
                world.disk.is_full = what == "full"
    world.disk.is_full = False
    world.disk.real.trouble.power_lost = None


async def live(trial: Trial) -> None:
    async with anyio.create_task_group() as tasks:
        world = World(trial, tasks)
        people = [Person(world, name, ClientRole.LEAD) for name in ("ann", "bob")]
        people += [Person(world, name, ClientRole.WATCH) for name in ("cat", "dan")]
        for person in people:
            tasks.start_soon(person.attend)
        await harm(world)
        with anyio.fail_after(CALM):
            await rest(world, people)
        world.check_fold()
        check(world.records(), people)
        tasks.cancel_scope.cancel()


async def rest(world: World, people: list[Person]) -> None:
    """Wait until nothing runs or waits, and everybody has seen everything."""
    is_calm = 0
    while is_calm < 3:
        await anyio.sleep(50.0)
        host = world.host
        is_idle = host is not None and host.book is not None
        is_idle = is_idle and host.book.session.phase in {SessionPhase.IDLE, SessionPhase.CLOSED}
        is_idle = is_idle and not host.book.session.waiting
        ends = {len(person.seen) for person in people}
        is_idle = is_idle and host.book.kept == host.book.session
        is_calm = is_calm + 1 if is_idle and ends == {host.book.seq} else 0


def check(records: list[tuple[int, AnyRecord]], people: list[Person]) -> None:
    assert [seq for seq, _ in records] == list(range(1, len(records) + 1))
    for person in people:
        assert [(each.seq, each.record) for each in person.seen] == records
        check_commands(records, person)
    check_turns([record for _, record in records])


def check_commands(records: list[tuple[int, AnyRecord]], person: Person) -> None:
    """What was acknowledged is there, once; what was refused is not there."""
    counted = Counter(getattr(record, "command", "") for _, record in records)
    where = {getattr(record, "command", ""): seq for seq, record in records}
    for id_, seq in person.done.items():
        assert counted[id_] == 1, id_
        assert where[id_] <= seq
    assert [id_ for id_ in person.refused if id_ not in person.done and counted[id_]] == []


def check_turns(records: list[AnyRecord]) -> None:
    """Every turn begins and ends once, in order; no question is open while nothing runs."""
    session, begun, closed = SessionState(), list[int](), list[int]()
    published = list[int]()
    wanted = list[int]()
    for record in records:
        match record:
            case PromptQueued(turn=turn):
                wanted.append(turn)
            case TurnAborted() | SessionEnded():
                wanted = [turn for turn in wanted if turn in begun]
            case TurnBegun(turn):
                assert not session.is_running
                assert turn in wanted or session.is_closed  # in the same moment
                begun.append(turn)
            case PublicationRecorded(turn):
                assert session.publishing == f"s1/{turn}"
                published.append(turn)
            case TurnClosed(turn, ending):
                assert session.is_running
                assert session.publishing is None  # what was to be published is
                assert ending is TurnEnding.COMPLETED or turn not in published
                closed.append(turn)
            case QuestionAnswered(question):
                assert question in {each.question for each in session.questions}
        session = fold(session, [record])
        assert session.is_running or not session.questions
    assert begun == sorted(set(begun)) == closed
    assert published == sorted(set(published))
    assert set(wanted) <= set(begun)


@pytest.mark.promise("A2", "A3", "A6", "A7", "R3", "R8")
def test_nothing_that_was_acknowledged_is_lost_or_doubled(sweep: Sweep) -> None:
    sweep(live, SAMPLE)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_nor_under_any_of_five_hundred_seeds(sweep: Sweep) -> None:
    sweep(live, ALL)
