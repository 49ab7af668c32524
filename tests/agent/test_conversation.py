"""A conversation goes on, whatever happens to a turn of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import replace

import anyio
import msgspec
import pytest

from holdfast.agent.failures import (
    AgentCrashed,
    AgentUnstable,
    AnswerIncomplete,
    ContentRefused,
    ContextTooLong,
    ContextWindowExhausted,
    CostSpent,
    HeadUnknown,
    StepsSpent,
    TimeSpent,
    TokensSpent,
)
from holdfast.agent.history.compaction import COMPRESSED
from holdfast.agent.history.tree import ABORTED, INTERRUPTED, SUMMARY, repairs
from holdfast.agent.loop import BudgetLimits
from holdfast.agent.model import (
    AnyAnswerDelta,
    MessageAppended,
    ModelChoice,
    ModelRequest,
    ModelText,
    StopReason,
    Tokens,
    ToolResult,
    ToolUse,
    ToolUseEnded,
    TurnDelta,
    TurnNote,
    TurnOutcome,
    TurnOver,
    TurnQuestion,
    TurnUsage,
    TurnWaiting,
)
from holdfast.agent.ports import ToolContext
from holdfast.agent.providers.scripted import ScriptedAnswer, ScriptedCall, ScriptedModels
from holdfast.agent.turn_context import TurnItem
from holdfast.failures import RetryPolicy
from holdfast.failures.base import type_of
from tests.agent.conversing import Small, Stand, calls, end, only, says
from tests.simulation.clock import VirtualTimeLoop

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": lambda: VirtualTimeLoop(seed=1)}


async def test_what_is_shown_in_pieces_is_told_as_a_whole_by_the_same_name() -> None:
    """Whoever shows pieces knows by it that they are over, also where a model only thinks."""
    thinks = ScriptedAnswer(think="Hm.", calls=(ScriptedCall("look", {"text": "…"}),))
    stand = Stand([thinks, ScriptedAnswer(think="So.", say="All well.")])

    told = await stand.whole()

    shown: dict[str, str] = {}
    for each in only(told, TurnDelta):
        shown[each.item] = shown.get(each.item, "") + each.text
    whole = {each.item: each.text for each in only(told, ModelText)}
    whole |= {each.item: each.done.text for each in only(told, ToolUseEnded)}
    assert shown == whole
    assert list(whole.values()) == ["Hm.", "So.", "All well.", "…"]


async def test_a_turn_is_told_from_its_prompt_to_its_end() -> None:
    stand = Stand([calls("look", say="I look."), says("All well.")])

    told = await stand.whole("Look at it.")

    assert end(told) == TurnOver(TurnOutcome.COMPLETED)
    assert [each.text for each in only(told, ModelText)] == ["I look.", "All well."]
    assert [each.title for each in only(told, ToolUse)] == ["look t0"]
    assert [each.done.text for each in only(told, ToolUseEnded)] == ["t0"]
    assert "".join(each.text for each in only(told, TurnDelta)) == "I look.…All well."
    assert [each.context for each in only(told, TurnUsage)] == [110, 110]
    assert stand.history == [
        "user: Look at it.",
        "model: I look. [look]",
        "tool: t0",
        "model: All well.",
    ]


@pytest.mark.promise("A3")
async def test_another_process_knows_all_that_was_said() -> None:
    stand = Stand([says("One."), says("Two."), says("Three.")])
    async with stand.talk() as talk:
        await stand.turn(talk, "1")
        first = stand.tree.head
        await stand.turn(talk, "2")

    async with stand.talk() as talk:
        await stand.turn(talk, "3", {"head": first})

    asked = [[each.message.text for each in prompt.said] for _, prompt in stand.scripted.asked]
    assert asked == [["1"], ["1", "One.", "2"], ["1", "One.", "3"]]
    assert stand.history == ["user: 1", "model: One.", "user: 3", "model: Three."]


@pytest.mark.promise("T6", "C6")
async def test_a_key_is_neither_kept_nor_shown_nor_sent() -> None:
    key = "sk-canary-0123456789abcdef"

    async def leak(arguments: dict[str, object], context: ToolContext) -> ToolResult:
        for half in (key[:12], key[12:]):
            context.show(half)
        return ToolResult(f"it is {key}", shown=key)

    stand = Stand([calls("leak"), says(f"It was {key}.")], tools=[Small("leak", leak)])
    stand.config = replace(stand.config, known=lambda: (key,), complaints=(f"{key} is unusable",))
    async with stand.talk() as talk:
        told = await stand.turn(talk, f"Is it {key}?")
        told += await stand.turn(talk, "Go on.", {"head": key})

    hidden = "[redacted:known]"
    words = [msgspec.json.encode(each) for each in told]
    sent = [each.message.text for _, prompt in stand.scripted.asked for each in prompt.said]
    assert [each for each in (*words, *stand.memory) if key[:9].encode() in each] == []
    assert sent == [f"Is it {hidden}?", f"Is it {hidden}?", "", f"it is {hidden}"]
    assert [each.text for each in only(told, ModelText)] == [f"It was {hidden}."]
    assert hidden in str([each.failure for each in only(told, TurnOver)])


async def test_nobody_goes_on_from_what_never_was() -> None:
    stand = Stand([says("One.")])
    async with stand.talk() as talk:
        told = await stand.turn(talk, "1", {"head": "nowhere"})
        assert [each.failure["code"] for each in only(told, TurnOver) if each.failure] == [
            HeadUnknown.code
        ]
        assert end(await stand.turn(talk, "1")) == TurnOver(TurnOutcome.COMPLETED)


async def test_the_model_and_the_effort_are_chosen_for_a_turn() -> None:
    stand = Stand([says("One."), says("Two.")])
    async with stand.talk() as talk:
        await stand.turn(talk, "1", {"model": "other/large", "effort": "high"})
        await stand.turn(talk, "2")

    assert [choice for choice, _ in stand.scripted.asked] == [
        ModelChoice("other", "large", "high"),
        ModelChoice("scripted", "script"),
    ]


async def test_what_is_added_is_told_before_the_next_request() -> None:
    stand = Stand([calls("inquire"), says("Done.")])
    async with stand.talk() as talk, anyio.create_task_group() as tasks:

        async def add(asking: TurnQuestion) -> None:
            assert await talk.steer("And mind this.")
            assert talk.answer(asking.question, "yes")

        def heed(each: TurnItem) -> None:
            if isinstance(each, TurnQuestion):
                tasks.start_soon(add, each)

        await stand.turn(talk, heed=heed)
        assert not await talk.steer("Too late.")

    assert stand.history == [
        "user: go",
        "model:  [inquire]",
        "tool: yes",
        "user: And mind this.",
        "model: Done.",
    ]


async def test_calls_of_one_name_are_told_apart() -> None:
    twice = ScriptedAnswer(calls=(ScriptedCall("mark", {"text": "a"}, "same"),) * 2)
    again = ScriptedAnswer(calls=(ScriptedCall("mark", {"text": "b"}, "same"),))
    stand = Stand([twice, again, says("Well.")])

    await stand.whole()

    assert [each for each in stand.history if each.startswith("tool")] == [
        "tool: a",
        "tool: a",
        "tool: b",
    ]
    assert len(stand.tree.calls) == 3


@pytest.mark.promise("A11")
@pytest.mark.parametrize("stops", [True, False])
async def test_what_tools_left_running_ends_with_a_turn_that_is_stopped(*, stops: bool) -> None:
    cleared: list[bool] = []

    async def clear() -> None:
        cleared.append(True)

    stand = Stand([calls("look"), says("Well.")])
    stand.config = replace(stand.config, clear=clear)
    async with stand.talk() as talk:

        def heed(each: TurnItem) -> None:
            if isinstance(each, ToolUseEnded) and stops:
                talk.interrupt()

        await stand.turn(talk, heed=heed)

    assert bool(cleared) == stops


@pytest.mark.promise("A6")
async def test_nothing_is_done_and_no_model_is_told_before_it_is_written_down() -> None:
    done: list[bool] = []
    asked: list[bool] = []

    async def look(arguments: dict[str, object], context: ToolContext) -> ToolResult:
        del arguments
        tree = stand.tree
        done.append(context.call in tree.begun and context.call in tree.calls)
        return ToolResult("seen")

    def agreed(provider: str) -> None:  # is asked right before a request
        del provider
        kept = stand.history
        asked.append(len([each for each in kept if each.startswith("tool")]) == len(done))

    stand = Stand(
        [calls("look"), calls("look", "look"), says("Well.")], tools=[Small("look", look)]
    )
    stand.config = replace(stand.config, agreed=agreed)
    async with stand.talk() as talk:
        await stand.turn(talk)

    assert (done, asked) == ([True] * 3, [True] * 3)
    assert stand.history[0] == "user: go"


@pytest.mark.promise("A8", "A11")
async def test_an_abort_ends_a_tool_at_once_and_says_so() -> None:
    stand = Stand([calls("mark", "hang", "mark"), says("Never.")])
    async with stand.talk() as talk:

        def heed(each: TurnItem) -> None:
            if isinstance(each, ToolUse) and each.tool == "hang":
                talk.interrupt()

        began = anyio.current_time()
        told = await stand.turn(talk, heed=heed)
        assert anyio.current_time() - began < 0.1

    assert end(told) == TurnOver(TurnOutcome.ABORTED)
    assert stand.history[2:] == [
        "tool: t0",
        f"tool: {ABORTED} It had begun; it may or may not have completed.",
        f"tool: {ABORTED}",
    ]
    assert TurnNote("2 tool calls had no result; the model receives the reason instead.") in told


@pytest.mark.promise("A11")
async def test_what_was_said_until_an_abort_is_kept_and_marked() -> None:
    stand = Stand([ScriptedAnswer(say="One two three four."), says("Again.")])
    async with stand.talk() as talk:

        def heed(each: TurnItem) -> None:
            if isinstance(each, TurnDelta) and each.text == " two":
                talk.interrupt()

        told = await stand.turn(talk, heed=heed)
        assert end(told) == TurnOver(TurnOutcome.ABORTED)
        await stand.turn(talk, "Go on.")

    partial = only(told, ModelText)[0].text
    assert partial.startswith("One two")
    assert partial.endswith(ABORTED)
    assert stand.history == ["user: go", f"model: {partial}", "user: Go on.", "model: Again."]


@pytest.mark.promise("A1")
async def test_a_tool_that_crashes_or_is_none_gets_an_error_and_the_turn_goes_on() -> None:
    broken = ScriptedAnswer(calls=(ScriptedCall("look", "{"), ScriptedCall("look", {"text": 1})))
    stand = Stand([calls("crash", "nothing"), broken, says("Well.")])

    told = await stand.whole()

    assert end(told) == TurnOver(TurnOutcome.COMPLETED)
    results = [each.done for each in only(told, ToolUseEnded)]
    assert [each.is_error for each in results] == [True] * 4
    assert "ZeroDivisionError" in results[0].text
    assert results[1].text.startswith("Nothing was done: there is no tool 'nothing'; there are")
    assert "no JSON" in results[2].text
    assert results[3].text == "Nothing was done: text must be string."


@pytest.mark.promise("A1")
async def test_a_tool_that_hangs_is_reported_and_stopped() -> None:
    stand = Stand([calls("hang"), says("Well.")])
    began = anyio.current_time()

    told = await stand.whole()

    assert end(told) == TurnOver(TurnOutcome.COMPLETED)
    assert 600 <= anyio.current_time() - began < 610
    notes = [each.text for each in only(told, TurnNote)]
    assert notes == ["hang has told nothing for 120 seconds; it is stopped after 600."]
    assert only(told, ToolUseEnded)[0].done.text.startswith("Stopped: it had not ended after 600")


async def test_a_person_may_take_their_time() -> None:
    stand = Stand([calls("inquire"), says("Well.")])
    async with stand.talk() as talk, anyio.create_task_group() as tasks:

        async def answer(asking: TurnQuestion) -> None:
            await anyio.sleep(5_000)
            assert talk.answer(asking.question, "yes")

        def heed(each: TurnItem) -> None:
            if isinstance(each, TurnQuestion):
                tasks.start_soon(answer, each)

        told = await stand.turn(talk, heed=heed)
        assert [each.done.text for each in only(told, ToolUseEnded)] == ["yes"]


async def test_what_only_reads_is_used_together() -> None:
    together: list[int] = []
    running = 0

    async def slow(arguments: dict[str, object], context: ToolContext) -> ToolResult:
        nonlocal running
        running += 1
        together.append(running)
        await anyio.sleep(1)
        running -= 1
        return ToolResult("x")

    tools = (Small("look", slow, only_reads=True), Small("mark", slow))
    stand = Stand([calls("look", "look", "mark", "mark", "look"), says("Well.")], tools=tools)

    await stand.whole()

    assert together == [1, 2, 1, 1, 1]


@pytest.mark.promise("A9")
@pytest.mark.parametrize("answer", ["Retry", "Cancel"])
async def test_a_provider_in_trouble_pauses_the_turn(answer: str) -> None:
    stand = Stand([ScriptedAnswer(say="Half", fail="MODEL_OVERLOADED"), says("Well.")])

    told = await stand.whole(answer=answer)

    (asking,) = only(told, TurnQuestion)
    assert asking.choices == ("Retry", "Switch model", "Cancel")
    if answer == "Retry":
        assert end(told) == TurnOver(TurnOutcome.COMPLETED)
        assert stand.history == ["user: go", "model: Well."]
    else:
        failure = end(told).failure
        assert failure is not None
        assert (failure["code"], stand.history) == ("MODEL_OVERLOADED", ["user: go"])


@pytest.mark.promise("A9", "W12")
async def test_switching_the_model_asks_for_consent_again() -> None:
    stand = Stand([ScriptedAnswer(fail="MODEL_OVERLOADED"), says("Well.")])
    agreed: list[str] = []
    stand.config = replace(stand.config, agreed=agreed.append)
    async with stand.talk() as talk:

        def heed(each: TurnItem) -> None:
            if isinstance(each, TurnQuestion):
                talk.answer(each.question, "Switch model" if each.choices else "other/small")

        told = await stand.turn(talk, heed=heed)

    assert end(told) == TurnOver(TurnOutcome.COMPLETED)
    assert agreed == ["scripted", "other"]
    assert [choice.model for choice, _ in stand.scripted.asked] == ["script", "small"]


@pytest.mark.promise("A9")
async def test_a_refused_key_fails_at_once() -> None:
    stand = Stand([ScriptedAnswer(fail="MODEL_KEY_REFUSED")])

    told = await stand.whole()

    failure = end(told).failure
    assert failure is not None
    assert (failure["code"], only(told, TurnQuestion)) == ("MODEL_KEY_REFUSED", [])


@pytest.mark.promise("A9")
async def test_what_is_tried_again_is_told_and_void() -> None:
    stand = Stand(
        [ScriptedAnswer(say="Half", fail="MODEL_OVERLOADED"), says("Well.")], policy=RetryPolicy()
    )

    told = await stand.whole()

    assert end(told) == TurnOver(TurnOutcome.COMPLETED)
    notes = [each.text for each in only(told, TurnNote)]
    assert any("The partial answer was discarded" in note for note in notes)
    assert any("Trying again in" in note for note in notes)
    assert stand.history == ["user: go", "model: Well."]


@pytest.mark.parametrize(
    ("budget", "code"),
    [
        (BudgetLimits(steps=2), StepsSpent.code),
        (BudgetLimits(tokens=200), TokensSpent.code),
        (BudgetLimits(cost_usd=0.0), CostSpent.code),
        (BudgetLimits(seconds=0.0), TimeSpent.code),
    ],
)
async def test_a_turn_ends_with_its_budget_and_keeps_what_it_did(
    budget: BudgetLimits, code: str
) -> None:
    stand = Stand([calls("look", text=f"{at}/") for at in range(9)], budget=budget)

    told = await stand.whole()

    failure = end(told).failure
    assert failure is not None
    assert (failure["code"], type_of[code].kind.exit_status) == (code, 5)
    assert not repairs(stand.tree)
    assert stand.history[0] == "user: go"


@pytest.mark.promise("A10")
async def test_a_long_conversation_is_summarized_and_nothing_is_deleted() -> None:
    long = "x" * 3_000
    lines = [says(long), says(long), ScriptedAnswer(say="Goal: much."), says("Well.")]
    stand = Stand(
        [*(msgspec.structs.replace(each, tokens=Tokens()) for each in lines)], window=2_000
    )
    async with stand.talk() as talk:
        await stand.turn(talk, "1")
        await stand.turn(talk, "2")
        told = await stand.turn(talk, "3")

    assert end(told) == TurnOver(TurnOutcome.COMPLETED)
    assert TurnNote(COMPRESSED) in told
    assert stand.history[0].startswith("user: [What follows is a summary")
    assert "Goal: much.\n\n<person-messages>\n[person]\n1\n\n[person]\n2\n<" in stand.history[0]
    assert stand.history[1:] == ["user: 3", "model: Well."]
    entered = [each for each in stand.tree.way() if isinstance(each, MessageAppended)]
    assert len(entered) == 6
    assert [len(prompt.said) for _, prompt in stand.scripted.asked] == [1, 3, 1, 2]


@pytest.mark.promise("A10")
async def test_what_is_too_long_even_summarized_is_exhausted() -> None:
    too_long = ScriptedAnswer(fail=ContextTooLong.code)
    stand = Stand([says("1"), says("2"), too_long, says("S"), too_long, says("S"), too_long])
    async with stand.talk() as talk:
        await stand.turn(talk, "1")
        await stand.turn(talk, "2")
        told = await stand.turn(talk, "3")

    failure = end(told).failure
    assert failure is not None
    assert failure["code"] == ContextWindowExhausted.code
    assert "narrower change" in str(failure["userMessage"])


FAILED_SUMMARIES = (
    ScriptedAnswer(fail="MODEL_OVERLOADED"),
    ScriptedAnswer(fail="MODEL_RATE_LIMITED", retry_after=0.0),
    ScriptedAnswer(say="Half a summ", fail="MODEL_ANSWER_CUT"),
    ScriptedAnswer(say="Half a summ", stop=StopReason.LENGTH),
    ScriptedAnswer(say=""),
    ScriptedAnswer(say="No.", stop=StopReason.REFUSED),
)


async def summarizing(
    failed: ScriptedAnswer, *lines: ScriptedAnswer, answers: Sequence[str]
) -> tuple[Stand, list[str], list[TurnItem]]:
    """A second turn that must summarize the first; the history before it, and what was told."""
    big = msgspec.structs.replace(says("x" * 3_000), tokens=Tokens())
    stand = Stand([big, failed, *lines], window=1_000)
    rest = list(answers)
    async with stand.talk() as talk:
        await stand.turn(talk, "Build a boat.")
        history = stand.history

        def answer(told: TurnItem) -> None:
            if isinstance(told, TurnQuestion):
                assert talk.answer(told.question, rest.pop(0))

        told = await stand.turn(talk, "And a sail.", heed=answer)
    return stand, history, told


@pytest.mark.promise("A9", "A10")
@pytest.mark.parametrize("failed", FAILED_SUMMARIES)
async def test_a_summary_that_fails_replaces_nothing(failed: ScriptedAnswer) -> None:
    stand, history, told = await summarizing(failed, answers=["Cancel"])

    assert end(told).ending in (TurnOutcome.FAILED, TurnOutcome.INCOMPLETE)
    assert TurnNote(COMPRESSED) not in told
    assert stand.history == [*history, "user: And a sail."]
    (asked,) = only(told, TurnQuestion)
    assert asked.choices == ("Retry", "Switch model", "Cancel")


@pytest.mark.promise("A9", "A10")
@pytest.mark.parametrize("failed", FAILED_SUMMARIES)
async def test_a_summary_that_failed_is_made_when_the_person_retries(
    failed: ScriptedAnswer,
) -> None:
    stand, _, told = await summarizing(
        failed, says("Goal: a boat."), says("Well."), answers=["Retry"]
    )

    assert end(told) == TurnOver(TurnOutcome.COMPLETED)
    assert told.count(TurnNote(COMPRESSED)) == 1
    assert "Goal: a boat." in stand.history[0]
    assert "Build a boat." in stand.history[0]


@pytest.mark.promise("A9")
async def test_another_model_can_make_the_summary() -> None:
    stand, _, told = await summarizing(
        FAILED_SUMMARIES[0],
        says("Goal: a boat."),
        says("Well."),
        answers=["Switch model", "other/large"],
    )

    assert end(told) == TurnOver(TurnOutcome.COMPLETED)
    assert [choice.model for choice, _ in stand.scripted.asked[2:]] == ["large", "large"]


@pytest.mark.promise("A10")
async def test_a_wanted_summary_is_still_wanted_after_trouble() -> None:
    stand = Stand([says("1"), ScriptedAnswer(fail="MODEL_OVERLOADED"), says("S")])
    async with stand.talk() as talk:
        await stand.turn(talk, "1")
        told = await stand.turn(talk, "", {"compact": "yes"}, answer="Retry")

    assert end(told) == TurnOver(TurnOutcome.COMPLETED)
    assert TurnNote(COMPRESSED) in told


@pytest.mark.promise("A10")
async def test_a_request_for_a_summary_that_is_too_long_itself_is_made_shorter() -> None:
    too_long = ScriptedAnswer(fail=ContextTooLong.code)
    stand = Stand([says("x" * 8_000), too_long, too_long, says("S"), says("Well.")])
    async with stand.talk() as talk:
        await stand.turn(talk, "1")
        told = await stand.turn(talk, "2")

    assert end(told) == TurnOver(TurnOutcome.COMPLETED)
    first, second = (prompt.said[0].message.text for _, prompt in stand.scripted.asked[2:4])
    assert len(second) < len(first)


@pytest.mark.promise("A5", "A9")
async def test_what_a_turn_waits_for_is_told_and_not_kept() -> None:
    """A model that thinks for minutes, a tool that is silent, and a model that summarizes."""
    slow = msgspec.structs.replace(says("x" * 3_000), silence=102.0, tokens=Tokens())
    stand = Stand(
        [slow, msgspec.structs.replace(says("S"), silence=52.0), calls("nap"), says("Well.")],
        tools=[Small("nap", nap)],
        window=1_000,
    )
    async with stand.talk() as talk:
        first = only(await stand.turn(talk), TurnWaiting)
        second = only(await stand.turn(talk), TurnWaiting)

    assert [(each.what, round(each.seconds)) for each in first] == [
        ("scripted/script", seconds) for seconds in range(5, 105, 5)
    ]
    assert [each.what for each in second] == ["scripted/script"] * 10 + ["nap"] * 11
    assert not [memo for memo in stand.memory if b"wait" in memo]


async def nap(arguments: dict[str, object], context: ToolContext) -> ToolResult:
    """Say nothing for a minute."""
    await anyio.sleep(62)
    return ToolResult("Slept.")


CUT_CALL = ScriptedCall("mark", '{"text": "a lo')


@pytest.mark.promise("A15")
@pytest.mark.parametrize(
    "cut", [says("So f"), ScriptedAnswer(calls=(CUT_CALL,)), ScriptedAnswer(think="Hm")]
)
async def test_an_answer_that_is_cut_goes_on(cut: ScriptedAnswer) -> None:
    stand = Stand([msgspec.structs.replace(cut, stop=StopReason.LENGTH), says("ar, so good.")])

    told = await stand.whole()

    assert end(told) == TurnOver(TurnOutcome.COMPLETED)
    mark = next(each for each in stand.tools if each.spec.name == "mark")
    assert isinstance(mark, Small) and not mark.uses
    expected = (
        "the call was cut off at 10 tokens" if cut.calls else "cut off at 10 tokens. Continue"
    )
    assert expected in stand.history[-2]


@pytest.mark.promise("A15")
@pytest.mark.parametrize(
    "cut", [says("So f"), ScriptedAnswer(calls=(CUT_CALL,)), ScriptedAnswer(think="Hm")]
)
async def test_an_answer_that_is_cut_again_and_again_is_incomplete(cut: ScriptedAnswer) -> None:
    stand = Stand([msgspec.structs.replace(cut, stop=StopReason.LENGTH)] * 9)

    told = await stand.whole()

    over = end(told)
    assert over.ending is TurnOutcome.INCOMPLETE
    assert over.failure is not None
    assert (over.failure["code"], len(stand.scripted.asked)) == (AnswerIncomplete.code, 4)
    assert type_of[AnswerIncomplete.code].kind.exit_status == 1
    assert not repairs(stand.tree)


@pytest.mark.promise("A15")
@pytest.mark.parametrize("empty", [ScriptedAnswer(), ScriptedAnswer(think="Hm."), says(" \n")])
async def test_an_empty_answer_is_asked_for_once_more(empty: ScriptedAnswer) -> None:
    stand = Stand([empty, says("Well."), empty, empty])
    async with stand.talk() as talk:
        once = await stand.turn(talk)
        twice = await stand.turn(talk)

    assert end(once) == TurnOver(TurnOutcome.COMPLETED)
    over = end(twice)
    assert over.ending is TurnOutcome.INCOMPLETE
    assert over.failure is not None
    assert over.failure["code"] == AnswerIncomplete.code


@pytest.mark.promise("A15")
@pytest.mark.parametrize(
    "refused",
    [ScriptedAnswer(say="No.", stop=StopReason.REFUSED), ScriptedAnswer(fail=ContentRefused.code)],
)
async def test_a_refusal_is_not_an_answer(refused: ScriptedAnswer) -> None:
    stand = Stand([refused])

    over = end(await stand.whole())

    assert over.ending is TurnOutcome.REFUSED
    assert over.failure is not None
    assert over.failure["code"] == ContentRefused.code
    assert type_of[ContentRefused.code].kind.exit_status == 1


async def test_a_person_can_have_it_summarized() -> None:
    stand = Stand([says("1"), says("S")])
    async with stand.talk() as talk:
        await stand.turn(talk, "1")
        told = await stand.turn(talk, "", {"compact": "yes"})

    assert end(told) == TurnOver(TurnOutcome.COMPLETED)
    (summary,) = stand.history
    assert summary.startswith(f"user: {SUMMARY}S\n")


async def test_a_long_result_is_a_receipt_and_can_be_recalled() -> None:
    async def flood(arguments: dict[str, object], context: ToolContext) -> ToolResult:
        return ToolResult("a" * 20_000 + "MIDDLE" + "b" * 20_000)

    first = calls("flood")
    stand = Stand([first, says("Well.")], tools=(Small("flood", flood),))
    await stand.whole()
    (call,) = stand.tree.calls
    recall = ScriptedAnswer(calls=(ScriptedCall("recall", {"call": call, "offset": 19_990}),))
    stand.config = replace(stand.config, models=ScriptedModels([recall, says("Well.")]))
    await stand.whole("again")

    receipt, page = (each for each in stand.history if each.startswith("tool"))
    assert len(receipt) < 20_000
    assert "MIDDLE" not in receipt
    assert f'"{call}" and offset 8000' in receipt
    assert "MIDDLE" in page


@pytest.mark.promise("A8")
async def test_who_stops_listening_stops_the_turn_and_what_nobody_kept_never_was() -> None:
    stand = Stand([calls("mark", "hang"), says("Well.")])
    async with stand.talk() as talk:
        async with aclosing(talk.take_turn("go", {})) as batches:
            async for batch in batches:
                stand.keep(batch)
                if any(isinstance(each, ToolUse) and each.tool == "hang" for each in batch):
                    break
        told = await stand.turn(talk, "Again.")

    assert end(told) == TurnOver(TurnOutcome.COMPLETED)
    assert stand.history[2:] == ["tool: t0", f"tool: {INTERRUPTED}", "user: Again.", "model: Well."]


@pytest.mark.promise("A2")
async def test_an_agent_that_crashes_says_so_and_three_times_is_enough() -> None:
    stand = Stand([], models=Broken())
    for _ in range(3):
        failure = end(await stand.whole()).failure
        assert failure is not None
        assert failure["userMessage"] == AgentCrashed.user_template

    with pytest.raises(AgentUnstable):
        await stand.whole()
    await anyio.sleep(61)
    stand.config = replace(stand.config, models=ScriptedModels([says("Well.")]))
    assert end(await stand.whole()) == TurnOver(TurnOutcome.COMPLETED)


class Broken:
    """Models with a bug."""

    def answering(
        self, choice: ModelChoice, prompt: ModelRequest
    ) -> AbstractAsyncContextManager[AsyncGenerator[Sequence[AnyAnswerDelta]]]:
        raise ZeroDivisionError

    def window(self, choice: ModelChoice) -> int | None:
        return None

    def price(self, choice: ModelChoice, tokens: Tokens) -> float | None:
        return None
