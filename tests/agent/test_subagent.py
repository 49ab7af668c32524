"""A part of the work is done by another agent, and whatever becomes of it is a result."""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest

from holdfast.agent.loop import BudgetLimits
from holdfast.agent.model import (
    StopReason,
    ToolUseEnded,
    TurnDelta,
    TurnDeltaKind,
    TurnNote,
    TurnOutcome,
    TurnOver,
    TurnQuestion,
    UsageRecorded,
)
from holdfast.agent.providers.scripted import ScriptedAnswer, ScriptedCall, ScriptedModels
from holdfast.agent.subagent import NAME, SubAgent
from tests.agent.conversing import Paced, Stand, calls, end, only, says
from tests.simulation.clock import VirtualTimeLoop

pytestmark = [pytest.mark.anyio, pytest.mark.promise("A1")]
DELEGATE = ScriptedAnswer(calls=(ScriptedCall(NAME, {"task": "Count."}),))


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": lambda: VirtualTimeLoop(seed=1)}


def delegating(
    *lines: ScriptedAnswer, budget: BudgetLimits | None = None
) -> tuple[Stand, ScriptedModels]:
    """A stand whose agent has another one do something, and then goes on."""
    stand = Stand([DELEGATE, says("Done.")])
    below = ScriptedModels(lines)
    config = replace(stand.config, models=Paced(below))
    tool = SubAgent(config, budget=budget or BudgetLimits())
    stand.config = replace(stand.config, tools={**stand.config.tools, NAME: tool})
    return stand, below


async def test_its_last_words_are_the_result_and_its_steps_are_shown() -> None:
    stand, below = delegating(calls("mark", say="I count."), says("Seven."))

    told = await stand.whole()

    assert end(told) == TurnOver(TurnOutcome.COMPLETED)
    assert stand.history == ["user: go", f"model:  [{NAME}]", "tool: Seven.", "model: Done."]
    shown = [each.text for each in only(told, TurnDelta) if each.sort is TurnDeltaKind.OUTPUT]
    assert "".join(shown) == "I count.\n▸ mark t0\nSeven.\n"
    assert [each.done.shown for each in only(told, ToolUseEnded)] == ["".join(shown)]
    assert len(only(told, UsageRecorded)) == 4
    ((_, first), _) = below.asked
    assert NAME not in [each.name for each in first.tools]
    assert [each.message.text for each in first.said] == ["Count."]


@pytest.mark.promise("A15")
async def test_an_answer_that_was_cut_and_continued_is_the_result_as_a_whole() -> None:
    stand, _ = delegating(
        ScriptedAnswer(say="Se", stop=StopReason.LENGTH), ScriptedAnswer(say="ven.")
    )

    await stand.whole()

    assert stand.history[2] == "tool: Seven."


async def test_what_it_asks_for_is_asked_of_the_person() -> None:
    stand, _ = delegating(calls("inquire"), says("It said yes."))

    told = await stand.whole(answer="yes")

    assert [(each.title, each.is_permission) for each in only(told, TurnQuestion)] == [
        ("Sub-agent: May I?", True)
    ]
    assert stand.history[2] == "tool: It said yes."


@pytest.mark.parametrize(
    ("lines", "budget", "words"),
    [
        ([ScriptedAnswer(fail="MODEL_KEY_REFUSED")], None, "did not finish"),
        (
            [calls("look")] * 3,
            BudgetLimits(steps=2),
            "did not finish: The turn was stopped after 2",
        ),
        ([], None, "did not finish"),
    ],
    ids=["refused", "spent", "ended"],
)
async def test_one_that_fails_is_an_error_and_the_turn_goes_on(
    lines: list[ScriptedAnswer], budget: BudgetLimits | None, words: str
) -> None:
    stand, _ = delegating(*lines, budget=budget)

    told = await stand.whole()

    assert end(told) == TurnOver(TurnOutcome.COMPLETED)
    (used,) = only(told, ToolUseEnded)
    assert used.done.is_error
    assert words in used.done.text


async def test_one_that_crashes_is_an_error_and_the_turn_goes_on() -> None:
    stand, _ = delegating(says("Never."))
    config = replace(stand.config, tools={}, agreed=_break)
    stand.config = replace(stand.config, tools={NAME: SubAgent(config)})

    told = await stand.whole()

    assert end(told) == TurnOver(TurnOutcome.COMPLETED)
    assert "ZeroDivisionError" in only(told, ToolUseEnded)[0].done.text


def _break(provider: str) -> None:
    raise ZeroDivisionError(provider)


async def test_one_that_hangs_is_reported_and_stopped() -> None:
    stand, _ = delegating(calls("hang"), says("Never."))
    began = anyio.current_time()

    told = await stand.whole()

    assert end(told) == TurnOver(TurnOutcome.COMPLETED)
    assert anyio.current_time() - began <= 601
    assert any("told nothing for 120" in each.text for each in only(told, TurnNote))


async def test_an_abort_ends_it_too() -> None:
    stand, _ = delegating(calls("hang"), says("Never."))
    async with stand.talk() as talk:

        def heed(each: object) -> None:
            if isinstance(each, TurnDelta) and each.text.startswith("▸ hang"):
                talk.interrupt()

        told = await stand.turn(talk, heed=heed)

    assert end(told) == TurnOver(TurnOutcome.ABORTED)
    assert stand.history[-1].startswith("tool: [Aborted by user]")
