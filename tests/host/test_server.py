"""Who leads a session is obeyed, who watches it is told, and who is slow misses nothing kept."""

from __future__ import annotations

import anyio
import msgspec
import pytest

from holdfast.failures import Failure
from holdfast.host.client import RecordReceived, attach_host
from holdfast.host.failures import LeaseOutdated, NotLeading
from holdfast.host.journal_tail import PAGE_BYTES
from holdfast.host.model import AttemptStarted, EventRecorded, PromptCommand, TurnClosed
from holdfast.host.protocol import WATCH, ClientRole, WatchParams, hello
from holdfast.host.server import ClientSession
from holdfast.rpc import HELLO, Connection, ConnectionConfig, HandshakeGate, send_hello
from holdfast.rpc.failures import HandshakeMissing
from holdfast.rpc.transports.memory import MemoryTransport, pair
from holdfast.runners.model import Delta, DeltaKind, TextCompleted
from holdfast.world import background_tasks
from tests.host.staging import Hosted, hosted, until
from tests.simulation.clock import VirtualTimeLoop

pytestmark = pytest.mark.anyio


@pytest.fixture(params=range(3), ids="seed{}".format)
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": lambda: VirtualTimeLoop(seed=request.param)}


@pytest.mark.promise("A4")
async def test_whoever_watches_hears_all_and_changes_nothing() -> None:
    async with hosted([[TextCompleted("1", "One")]]) as host:
        async with host.call() as leader, host.call(ClientRole.WATCH) as watcher:
            with pytest.raises(NotLeading):
                await watcher.command(PromptCommand("c0", "no"))
            await leader.command(PromptCommand("c1", "go"))
            heard = await until(watcher, lambda each: isinstance(each, TurnClosed))
            assert heard == await until(leader, lambda each: isinstance(each, TurnClosed))

    assert host.puppet.heard == ["go"]


async def test_who_has_not_introduced_itself_is_not_served() -> None:
    async with hosted([[TextCompleted("1", "One")]]) as host, background_tasks() as tasks:
        ours, theirs = pair()
        tasks.start_soon(ClientSession(host.service, host.turns).attend, theirs)
        async with Connection(ours) as connection:
            with pytest.raises(Failure) as caught:
                await connection.request("state", timeout=60)

    assert HandshakeMissing.code in str(caught.value)


@pytest.mark.promise("R8")
async def test_a_newer_lease_takes_over() -> None:
    async with hosted([[TextCompleted("1", "One")]]) as host:
        async with host.call(generation=2):
            pass
        with pytest.raises(LeaseOutdated):
            async with host.call(generation=1):
                pass
        async with host.call() as anybody, host.call(generation=3) as newest:
            assert anybody.standing.attempt == 1
            with pytest.raises(LeaseOutdated):  # though it came in with a good one
                await anybody.command(PromptCommand("c1", "go"))
            await newest.command(PromptCommand("c1", "go"))

    assert host.book.session.generation == 3


@pytest.mark.promise("A5")
async def test_a_ping_says_how_long_nothing_has_happened() -> None:
    async with hosted([[1e6]]) as host, host.call() as call:
        assert (await call.ping()).turn == 0
        await call.command(PromptCommand("c1", "go"))
        await anyio.sleep(200)
        pulse = await call.ping()

    assert (pulse.turn >= 199, pulse.journal) == (True, 0.0)


async def test_who_is_slow_to_look_misses_only_what_is_not_kept() -> None:
    long = "x" * PAGE_BYTES
    script = [
        [Delta("1", DeltaKind.TEXT, "x")] * 2_000 + [TextCompleted(str(n), long) for n in range(30)]
    ]
    async with hosted(script) as host, host.call() as call:
        watched = call.watch()
        await anext(watched)
        await call.command(PromptCommand("c1", "go"))
        await anyio.sleep(100)
        kept: list[RecordReceived] = []
        while not kept or not isinstance(kept[-1].record, TurnClosed):
            kept += [each for each in await anext(watched) if isinstance(each, RecordReceived)]
        await watched.aclose()

    assert [each.seq for each in kept] == list(range(kept[0].seq, kept[0].seq + len(kept)))
    assert sum(1 for each in kept if "TextCompleted" in repr(each.record)[:200]) == 30


@pytest.mark.promise("A4")
async def test_nobody_waits_for_a_watcher_that_hung_up() -> None:
    async with hosted([[TextCompleted("1", "One")]]) as host:
        async with host.call() as leader:
            async with host.call(ClientRole.WATCH) as gone:
                await until(gone, lambda _: True)
            await until(leader, lambda _: True)
            await leader.command(PromptCommand("c1", "go"))
            await until(leader, lambda each: isinstance(each, TurnClosed))
        assert await farewell_seconds(host) == 0


async def test_a_farewell_waits_for_who_is_behind_and_not_for_ever() -> None:
    long = EventRecorded(1, TextCompleted("1", "x" * PAGE_BYTES))
    async with hosted([[TextCompleted("1", "One")]]) as host, background_tasks() as tasks:
        ours, theirs = pair()
        tasks.start_soon(ClientSession(host.service, host.turns).attend, theirs)
        async with attach_host(ours, role=ClientRole.WATCH) as call:
            watched = call.watch()
            await anext(watched)
            for delay, seconds in ((0.0, 0.0), (0.5, 0.5), (1e6, 1.0)):
                theirs.outgoing.delay = delay
                for _ in range(2):  # the second waits until the first has arrived
                    await host.book.write(long)
                assert await farewell_seconds(host) == pytest.approx(seconds)
            await host.book.write(long)
            tasks.start_soon(cut_after, 0.25, ours)
            assert await farewell_seconds(host) == pytest.approx(0.25)


async def test_a_watcher_that_knows_everything_is_not_waited_for() -> None:
    async with hosted([[TextCompleted("1", "One")]]) as host, host.call() as call:
        watched = call.watch(after=host.book.seq)
        async with background_tasks() as tasks:
            tasks.start_soon(anext, watched)
            await anyio.sleep(1)
            assert await farewell_seconds(host) == 0


async def test_who_watches_anew_hears_each_record_once() -> None:
    async with hosted([[TextCompleted("1", "One")]]) as host, background_tasks() as tasks:
        ours, theirs = pair()
        tasks.start_soon(ClientSession(host.service, host.turns).attend, theirs)
        gate = HandshakeGate(method=HELLO)
        async with Connection(ours, ConnectionConfig(calls=gate)) as connection:
            await send_hello(connection, hello("test", "1"), gate, timeout=60)
            with connection.subscribe() as told:
                for number in (1, 2):
                    params = WatchParams(host.book.seq, number)
                    await connection.request(WATCH, params, timeout=60)
                await host.book.write(AttemptStarted(2, 1))
                await anyio.sleep(1)
                heard = [msgspec.json.decode(each.params) for each in await told.receive()]

    assert [each["watch"] for each in heard] == [2]


async def cut_after(seconds: float, transport: MemoryTransport) -> None:
    await anyio.sleep(seconds)
    transport.cut()


async def farewell_seconds(host: Hosted) -> float:
    begun = anyio.current_time()
    await host.service.farewell()
    return anyio.current_time() - begun
