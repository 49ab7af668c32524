"""The runner in memory tells what it was given."""

from __future__ import annotations

import anyio
import pytest

from holdfast.runners.memory import Puppet
from holdfast.runners.model import Asked, Ending, Said, SessionKnown, TurnEnded
from holdfast.runners.testing import Notebook, heard

pytestmark = pytest.mark.anyio


async def test_it_tells_its_script_turn_by_turn() -> None:
    puppet = Puppet([[Said("1", "One")], [Said("2", "Two")]])
    async with puppet.converse(None, Notebook()) as talk:
        first = await heard(talk)
    async with puppet.converse("1", Notebook()) as talk:
        second = await heard(talk)

    assert first == [SessionKnown("1"), Said("1", "One"), TurnEnded(Ending.COMPLETED)]
    assert second == [SessionKnown("2"), Said("2", "Two"), TurnEnded(Ending.COMPLETED)]


async def test_it_waits_for_answers_and_can_be_interrupted() -> None:
    puppet = Puppet([[Asked("q", "?"), Said("1", "One"), 1e6]])

    async def answer(asked: Asked) -> None:
        assert await puppet.answer(asked.question, "yes")
        assert not await puppet.answer(asked.question, "no")
        await anyio.wait_all_tasks_blocked()
        await puppet.interrupt()

    async with puppet.converse(None, Notebook()) as talk:
        events = await heard(talk, answer=answer)

    assert events[-2:] == [Said("1", "One"), TurnEnded(Ending.INTERRUPTED)]
    assert puppet.answers == {"q": "yes"}
