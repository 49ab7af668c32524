"""The runner in memory tells what it was given."""

from __future__ import annotations

import anyio
import pytest

from holdfast.runners.memory import MemoryRunner
from holdfast.runners.model import QuestionAsked, SessionKnown, TextCompleted, TurnEnded, TurnEnding
from holdfast.runners.testing import RunnerJournal, heard

pytestmark = pytest.mark.anyio


async def test_it_tells_its_script_turn_by_turn() -> None:
    puppet = MemoryRunner([[TextCompleted("1", "One")], [TextCompleted("2", "Two")]])
    async with puppet.converse(None, RunnerJournal()) as conversation:
        first = await heard(conversation)
    async with puppet.converse("1", RunnerJournal()) as conversation:
        second = await heard(conversation)

    assert first == [SessionKnown("1"), TextCompleted("1", "One"), TurnEnded(TurnEnding.COMPLETED)]
    assert second == [SessionKnown("2"), TextCompleted("2", "Two"), TurnEnded(TurnEnding.COMPLETED)]


async def test_it_waits_for_answers_and_can_be_interrupted() -> None:
    puppet = MemoryRunner([[QuestionAsked("q", "?"), TextCompleted("1", "One"), 1e6]])

    async def answer(asked: QuestionAsked) -> None:
        assert await puppet.answer(asked.question, "yes")
        assert not await puppet.answer(asked.question, "no")
        await anyio.wait_all_tasks_blocked()
        await puppet.interrupt()

    async with puppet.converse(None, RunnerJournal()) as conversation:
        events = await heard(conversation, answer=answer)

    assert events[-2:] == [TextCompleted("1", "One"), TurnEnded(TurnEnding.INTERRUPTED)]
    assert puppet.answers == {"q": "yes"}
