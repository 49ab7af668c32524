"""Our own agent says how it is, and goes on only with what is its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from holdfast.agent import AgentConfig, ScriptedModels
from holdfast.agent.failures import AgentUnstable, KeyMissing
from holdfast.agent.model import ModelChoice
from holdfast.agent.providers.scripted import ScriptedAnswer
from holdfast.runners.failures import SessionUnknown
from holdfast.runners.model import (
    MemoryRecorded,
    SessionKnown,
    TextCompleted,
    TurnEnded,
    TurnEnding,
    TurnStarted,
)
from holdfast.runners.native import NativeRunner
from holdfast.runners.testing import RunnerJournal, heard

pytestmark = pytest.mark.anyio
CHOICE = ModelChoice("scripted", "script")


def runner_of(models: ScriptedModels) -> NativeRunner:
    @asynccontextmanager
    async def kits() -> AsyncGenerator[AgentConfig]:
        yield AgentConfig(models=models, choice=CHOICE, tools={})

    return NativeRunner(kits)


async def test_the_first_batch_says_how_to_go_on() -> None:
    memory = RunnerJournal()
    runner = runner_of(ScriptedModels([ScriptedAnswer(say="Hello.")]))
    async with runner.converse(None, memory) as conversation:
        events = await heard(conversation, memory)

    shown = [each for each in events if not isinstance(each, MemoryRecorded)]
    assert shown[:2] == [SessionKnown("native-1"), TurnStarted()]
    assert [each.text for each in shown if isinstance(each, TextCompleted)] == ["Hello."]
    assert shown[-1] == TurnEnded(TurnEnding.COMPLETED)
    assert len(memory.kept) == 3


async def test_it_does_not_go_on_with_what_another_began() -> None:
    with pytest.raises(SessionUnknown):
        async with runner_of(ScriptedModels([])).converse("thread-7", RunnerJournal()):
            pass


async def test_it_says_what_it_lacks() -> None:
    @asynccontextmanager
    async def kits() -> AsyncGenerator[AgentConfig]:
        raise AssertionError("no conversation is begun for that")
        yield

    async def examine() -> None:
        raise KeyMissing(provider="p", variable="P_KEY", file="/keys")

    health = await NativeRunner(kits, examine=examine).health()

    assert (health.is_healthy, "P_KEY" in health.reason) == (False, True)
    assert (await NativeRunner(kits).health()).is_healthy


@pytest.mark.promise("A2")
async def test_its_crashes_are_counted_over_all_conversations() -> None:
    @asynccontextmanager
    async def kits() -> AsyncGenerator[AgentConfig]:
        def broken(provider: str) -> None:
            raise ZeroDivisionError(provider)

        yield AgentConfig(models=ScriptedModels([]), choice=CHOICE, tools={}, agreed=broken)

    runner = NativeRunner(kits)
    for _ in range(3):
        async with runner.converse(None, RunnerJournal()) as conversation:
            ended = (await heard(conversation))[-1]
            assert isinstance(ended, TurnEnded)
            assert ended.failure is not None
            assert ended.failure["code"] == "AGENT_CRASHED"

    with pytest.raises(AgentUnstable):
        async with runner.converse(None, RunnerJournal()):
            pass
