"""A conversation cut after every single byte: every request ends, nothing is made up."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import anyio
import msgspec
import pytest

from holdfast.failures import Failure
from holdfast.rpc.connection import Connection, ConnectionConfig
from holdfast.rpc.dispatch import Handler, Service
from holdfast.rpc.subscription import Subscription
from holdfast.rpc.transports.memory import pair
from tests.simulation.clock import VirtualTimeLoop

REQUESTS = 70  # with its answer and the news before it, each makes three messages of about 200


class Ask(msgspec.Struct):
    """What the far side is asked to repeat."""

    n: int


async def follow(subscription: Subscription, heard: list[int]) -> None:
    with suppress(Failure):
        while True:
            heard += [int(bytes(note.params)) for note in await subscription.receive()]


async def converse(*, cut_ours: float, cut_theirs: float) -> tuple[int, int, int]:
    """Talk until done or cut; return the answers, the news and the bytes sent by both sides."""
    ours, theirs = pair()
    ours.outgoing.cut_after, theirs.outgoing.cut_after = cut_ours, cut_theirs
    answers: list[int] = []
    heard: list[int] = []
    sent = [0, 0]

    def counted(side: int, message: bytes) -> tuple[bytes]:
        sent[side] += len(message) + 1
        return (message,)

    ours.outgoing.tamper = partial(counted, 0)
    theirs.outgoing.tamper = partial(counted, 1)

    async def repeat(ask: Ask) -> object:
        await them.notify("told", ask.n)
        return ask.n

    service = Service({"repeat": Handler(Ask, repeat)})
    async with (
        Connection(ours) as us,
        Connection(theirs, ConnectionConfig(service=service)) as them,
    ):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow, us.subscribe(), heard)
            for number in range(REQUESTS):
                with suppress(Failure):  # that each one ends is what this loop proves
                    answers.append(await us.request("repeat", Ask(number), timeout=5, result=int))
            await us.aclose()
    assert answers == list(range(len(answers)))
    assert heard == list(range(len(heard)))
    assert len(heard) >= len(answers), "what was answered had been told before"
    return len(answers), sent[0], sent[1]


def run(**cuts: float) -> tuple[int, int, int]:
    both = {"cut_ours": float("inf"), "cut_theirs": float("inf")} | cuts
    options = {"loop_factory": lambda: VirtualTimeLoop(seed=1)}
    return anyio.run(partial(converse, **both), backend_options=options)


def cut_everywhere(*, step: int) -> None:
    answered, ours, theirs = run()
    assert answered == REQUESTS
    last = 0
    for offset in range(0, ours, step):
        answered, _, _ = run(cut_ours=float(offset))
        assert last <= answered < REQUESTS
        last = answered
    for offset in (*range(0, theirs, step), theirs - 1):
        answered, _, _ = run(cut_theirs=float(offset))
        lacks_only_its_end = offset == theirs - 1  # the last answer is whole all the same
        assert (answered == REQUESTS) is lacks_only_its_end


@pytest.mark.promise("F2", "F16")
def test_a_conversation_cut_at_many_offsets_ends_every_request() -> None:
    cut_everywhere(step=37)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.promise("F2", "F16")
def test_a_conversation_cut_at_every_offset_ends_every_request() -> None:
    cut_everywhere(step=1)
