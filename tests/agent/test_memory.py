"""A desk in memory answers as a person would who was asked before."""

from __future__ import annotations

import pytest

from holdfast.agent.memory import MemoryToolContext

pytestmark = pytest.mark.anyio


async def test_a_desk_answers_what_it_was_told_to_and_then_refuses() -> None:
    context = MemoryToolContext(answers=["yes"])

    said = [await context.ask("Sure?", choices=("yes", "no")) for _ in range(2)]

    assert said == ["yes", "no"]
    assert await context.ask("What?") == ""
    assert context.asked[0] == ("Sure?", "", ("yes", "no"), False)
