"""A session goes on with an agent that has forgotten it."""

from __future__ import annotations

import pytest

from holdfast.failures import to_wire
from holdfast.host.model import EventRecorded, PromptCommand, TurnClosed
from holdfast.runners.failures import SessionUnknown
from holdfast.runners.model import NoticeIssued, TextCompleted, TurnEnding
from holdfast.world.testing import CrashingDisk
from tests.host.staging import hosted, until

pytestmark = pytest.mark.anyio


@pytest.mark.promise("A3")
async def test_an_agent_that_has_forgotten_is_told_again_what_was_said() -> None:
    disk = CrashingDisk()
    script = [[TextCompleted("1", "One.")]]
    async with hosted(script, disk=disk) as host, host.call() as call:
        await call.command(PromptCommand("c1", "One?"))
        await until(call, lambda each: isinstance(each, TurnClosed))
    async with hosted(script, disk=disk) as host:
        host.puppet.forgets = True
        async with host.call() as call:
            await call.command(PromptCommand("c2", "Two?"))
            seen = await until(call, lambda each: isinstance(each, TurnClosed) and each.turn == 2)
    records = [each.record for each in seen]
    unknown = SessionUnknown(runner="puppet", session="1")
    told = NoticeIssued(
        "The agent no longer knows this conversation. It receives the earlier messages again.",
        to_wire(unknown),
    )

    assert EventRecorded(2, told) in records
    assert isinstance(records[-1], TurnClosed)
    assert records[-1].ending is TurnEnding.COMPLETED
    (prompt,) = host.puppet.heard
    assert prompt.endswith("Person: One?\n\nYou: One.\n\nPerson, now: Two?")
