"""Who leads a session is obeyed, who watches it is told, and who is slow misses nothing kept."""

from __future__ import annotations

import anyio
import pytest

from holdfast.failures import Failure
from holdfast.host.core.tail import PAGE_BYTES
from holdfast.host.dialling import Kept, called
from holdfast.host.failures import LeaseOutdated, NotLeading
from holdfast.host.model import Prompt, TurnClosed
from holdfast.host.protocol import Role
from holdfast.host.serving import Visit
from holdfast.rpc import Connection
from holdfast.rpc.failures import HandshakeMissing
from holdfast.rpc.memory import pair
from holdfast.runners.model import Delta, Said, Sort
from holdfast.world import companions
from tests.host.staging import hosted, until
from tests.simulation.clock import VirtualTimeLoop

pytestmark = pytest.mark.anyio


@pytest.fixture(params=range(3), ids="seed{}".format)
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": lambda: VirtualTimeLoop(seed=request.param)}


@pytest.mark.promise("A4")
async def test_whoever_watches_hears_all_and_changes_nothing() -> None:
    async with hosted([[Said("1", "One")]]) as host:
        async with host.call() as leader, host.call(Role.WATCH) as watcher:
            with pytest.raises(NotLeading):
                await watcher.command(Prompt("c0", "no"))
            await leader.command(Prompt("c1", "go"))
            heard = await until(watcher, lambda each: isinstance(each, TurnClosed))
            assert heard == await until(leader, lambda each: isinstance(each, TurnClosed))

    assert host.puppet.heard == ["go"]


async def test_who_has_not_introduced_itself_is_not_served() -> None:
    async with hosted([[Said("1", "One")]]) as host, companions() as tasks:
        ours, theirs = pair()
        tasks.start_soon(Visit(host.reception, host.turns).attend, theirs)
        async with Connection(ours) as connection:
            with pytest.raises(Failure) as caught:
                await connection.request("state", timeout=60)

    assert HandshakeMissing.code in str(caught.value)


@pytest.mark.promise("R8")
async def test_a_newer_lease_takes_over() -> None:
    async with hosted([[Said("1", "One")]]) as host:
        async with host.call(generation=2):
            pass
        with pytest.raises(LeaseOutdated):
            async with host.call(generation=1):
                pass
        async with host.call() as anybody, host.call(generation=3) as newest:
            assert anybody.standing.attempt == 1
            with pytest.raises(LeaseOutdated):  # though it came in with a good one
                await anybody.command(Prompt("c1", "go"))
            await newest.command(Prompt("c1", "go"))

    assert host.book.session.generation == 3


@pytest.mark.promise("A5")
async def test_a_ping_says_how_long_nothing_has_happened() -> None:
    async with hosted([[1e6]]) as host, host.call() as call:
        assert (await call.ping()).turn == 0
        await call.command(Prompt("c1", "go"))
        await anyio.sleep(200)
        pulse = await call.ping()

    assert (pulse.turn >= 199, pulse.journal) == (True, 0.0)


async def test_who_is_slow_to_look_misses_only_what_is_not_kept() -> None:
    long = "x" * PAGE_BYTES
    script = [[Delta("1", Sort.TEXT, "x")] * 2_000 + [Said(str(n), long) for n in range(30)]]
    async with hosted(script) as host, host.call() as call:
        watched = call.watch()
        await anext(watched)
        await call.command(Prompt("c1", "go"))
        await anyio.sleep(100)
        kept: list[Kept] = []
        while not kept or not isinstance(kept[-1].record, TurnClosed):
            kept += [each for each in await anext(watched) if isinstance(each, Kept)]
        await watched.aclose()

    assert [each.seq for each in kept] == list(range(kept[0].seq, kept[0].seq + len(kept)))
    assert sum(1 for each in kept if "Said" in repr(each.record)[:200]) == 30


async def test_a_caller_that_hangs_up_is_forgotten() -> None:
    async with hosted([[Said("1", "One")]]) as host:
        ours, theirs = pair()
        async with companions() as tasks:
            tasks.start_soon(Visit(host.reception, host.turns).attend, theirs)
            async with called(ours) as call:
                await until(call, lambda _: True)
                ours.cut()
            await anyio.sleep(1)
            host.reception.show([Delta("1", Sort.TEXT, "x")])
