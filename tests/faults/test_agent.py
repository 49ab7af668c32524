"""Whatever happens to a turn of our own agent, and whenever: its history is one that all take."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.agent.conversation import AgentConversation
from holdfast.agent.model import ToolResult, TurnDelta, TurnOutcome, TurnOver
from holdfast.agent.ports import ToolContext
from holdfast.agent.providers.scripted import ScriptedAnswer, ScriptedCall
from holdfast.agent.turn_context import TurnItem
from tests.agent.conversing import Small, Stand, calls, end, says
from tests.faults.agent_stand import assert_sound, disturbed, stand_of
from tests.simulation.clock import VirtualTimeLoop

LINES = (
    calls("look", "look", "mark", say="I look and mark."),
    calls("inquire", "crash"),
    ScriptedAnswer(say="Half", fail="MODEL_ANSWER_CUT"),
    says("Done with it."),
    *(says("Well then."),) * 3,
)
TOLD = 60  # more than is told of a turn
POINTS = [pytest.param(at, marks=[pytest.mark.long] if at % 5 else []) for at in range(TOLD)]


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": lambda: VirtualTimeLoop(seed=1)}


@pytest.mark.anyio
@pytest.mark.promise("A8", "A11")
@pytest.mark.parametrize("at", POINTS)
async def test_an_abort_at_any_point_is_fast_and_leaves_a_valid_history(at: int) -> None:
    stand = stand_of(LINES)
    async with stand.talk() as talk:
        told, passed = await disturbed(stand, talk, at)
        assert passed < 0.1
        assert end(told).ending in (TurnOutcome.ABORTED, TurnOutcome.COMPLETED, TurnOutcome.FAILED)
        assert_sound(stand)
        assert end(await stand.turn(talk, "Go on.", answer="yes")).ending is not TurnOutcome.ABORTED
    assert_sound(stand)


@pytest.mark.anyio
@pytest.mark.promise("A2", "A3", "A8")
@pytest.mark.parametrize("at", POINTS)
async def test_a_crash_at_any_point_is_told_and_the_next_turn_goes_on(at: int) -> None:
    stand = stand_of(LINES)
    async with stand.talk() as talk:
        told, _ = await disturbed(stand, talk, at, crashes=True)
    over = end(told)
    assert over.failure is None or over.failure["code"] in ("AGENT_CRASHED", "MODEL_ANSWER_CUT")
    async with stand.talk() as talk:
        await stand.turn(talk, "Go on.", answer="yes")
    assert_sound(stand)


@pytest.mark.anyio
@pytest.mark.promise("A3", "A6", "A8")
async def test_a_journal_may_be_torn_or_damaged_anywhere() -> None:
    stand = stand_of(LINES)
    async with stand.talk() as talk:
        await stand.turn(talk, answer="Retry")
    whole = list(stand.memory)
    assert len(whole) > 12

    for at in range(len(whole)):
        for kept in (
            whole[:at],
            [*whole[:at], *whole[at + 1 :]],
            [*whole[:at], whole[at][: len(whole[at]) // 2], *whole[at + 1 :]],
            [*whole[:at], whole[at], *whole[at:]],
        ):
            again = stand_of([says("Well.")])
            again.memory = list(kept)
            async with again.talk() as talk:
                told = await again.turn(talk, "Go on.")
            assert end(told) == TurnOver(TurnOutcome.COMPLETED)
            assert again.history[-2:] == ["user: Go on.", "model: Well."]
            assert not again.tree.line.open


TOOLS = st.sampled_from(["look", "mark", "inquire", "crash", "nothing"])
CALLS = st.builds(
    ScriptedCall,
    TOOLS,
    st.sampled_from([{"text": "t"}, {"text": 1}, "{", ""]),
    st.sampled_from(["", "same"]),
)
ANSWERS = st.builds(
    ScriptedAnswer,
    say=st.sampled_from(["", "One two."]),
    think=st.sampled_from(["", "Hm."]),
    calls=st.lists(CALLS, max_size=3).map(tuple),
    fail=st.sampled_from(["", "", "", "MODEL_OVERLOADED", "CONTEXT_TOO_LONG", "MODEL_KEY_REFUSED"]),
)
FAULTS = st.lists(
    st.tuples(st.sampled_from(["abort", "crash", "leave", "steer"]), st.integers(0, 40)),
    min_size=1,
    max_size=4,
)


@pytest.mark.promise("A8")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ANSWERS, max_size=8), FAULTS, st.integers(0, 3))
def test_any_interleaving_leaves_what_every_provider_takes(
    lines: list[ScriptedAnswer], faults: list[tuple[str, int]], seed: int
) -> None:
    anyio.run(
        _interleaved,
        lines,
        faults,
        backend_options={"loop_factory": lambda: VirtualTimeLoop(seed=seed)},
    )


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.promise("A8")
@settings(max_examples=1_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ANSWERS, max_size=12), FAULTS, st.integers(0, 9))
def test_very_many_interleavings_do(
    lines: list[ScriptedAnswer], faults: list[tuple[str, int]], seed: int
) -> None:
    anyio.run(
        _interleaved,
        lines,
        faults,
        backend_options={"loop_factory": lambda: VirtualTimeLoop(seed=seed)},
    )


async def _interleaved(lines: list[ScriptedAnswer], faults: list[tuple[str, int]]) -> None:
    stand = stand_of([*lines, *(says("Well."),) * 40], window=4_000)
    for fault, at in faults:
        async with stand.talk() as talk:
            if fault == "steer":
                await _steered(stand, talk, at)
            else:
                await disturbed(stand, talk, at, crashes=fault == "crash", leaves=fault == "leave")
        await anyio.sleep(61)  # until the crashes before are forgotten
    async with stand.talk() as talk:
        await stand.turn(talk, "Go on.", answer="Retry")
    assert_sound(stand)
    assert not stand.tree.queued


async def _steered(stand: Stand, talk: AgentConversation, at: int) -> None:
    """A turn in which the person says something more."""
    async with anyio.create_task_group() as tasks:
        seen = 0

        def heed(_: object) -> None:
            nonlocal seen
            seen += 1
            if seen == at:
                tasks.start_soon(talk.steer, "Mind this.")

        await stand.turn(talk, answer="yes", heed=heed)


@pytest.mark.anyio
@pytest.mark.promise("A1", "A11")
async def test_nothing_of_a_stopped_turn_runs_on() -> None:
    ended: list[str] = []

    async def stubborn(arguments: dict[str, object], desk: ToolContext) -> ToolResult:
        del arguments
        desk.show("begun")
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("cancelled")
        raise AssertionError

    tool = Small("stubborn", stubborn, only_reads=True)
    stand = Stand([calls("stubborn", "stubborn"), says("Never.")], tools=[tool])
    shown: list[str] = []
    async with stand.talk() as talk:

        def heed(each: TurnItem) -> None:
            if isinstance(each, TurnDelta) and each.text == "begun":
                shown.append(each.item)
            if len(shown) == 2:
                talk.interrupt()

        told = await stand.turn(talk, heed=heed)

    assert (end(told).ending, ended) == (TurnOutcome.ABORTED, ["cancelled"] * 2)
    assert_sound(stand)
