"""A desk in memory answers as a person would who was asked before."""

from __future__ import annotations

import pytest

from holdfast.agent.memory import MemoryToolContext

pytestmark = pytest.mark.anyio


async def test_a_desk_answers_what_it_was_told_to_and_then_refuses() -> None:
    desk = MemoryToolContext(answers=["yes"])

    said = [await desk.ask("Sure?", choices=("yes", "no")) for _ in range(2)]

    assert said == ["yes", "no"]
    assert await desk.ask("What?") == ""
    assert desk.asked[0] == ("Sure?", "", ("yes", "no"), False)
