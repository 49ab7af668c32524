"""What stands around a runner is that runner to everybody."""

from __future__ import annotations

import pytest

from holdfast.runners import Runner
from holdfast.runners.memory import MemoryRunner
from holdfast.runners.model import AnyEvent, TextCompleted
from holdfast.runners.redaction import RunnerWrapper
from holdfast.runners.testing import RunnerJournal

pytestmark = pytest.mark.anyio


async def heard(runner: Runner) -> list[AnyEvent]:
    async with runner.converse(None, RunnerJournal()) as conversation:
        return [each async for batch in conversation.take_turn("Go") for each in batch]


async def test_everything_is_passed_on() -> None:
    inner = MemoryRunner([[TextCompleted("1", "Hello")]])
    around = RunnerWrapper(inner)

    assert (around.name, around.capabilities) == (inner.name, inner.capabilities)
    assert await around.health() == await inner.health()
    assert TextCompleted("1", "Hello") in await heard(around)
