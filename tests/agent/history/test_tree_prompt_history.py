"""What a model is told is valid, however it came to be."""

from __future__ import annotations

from holdfast.agent.history.tree import INTERRUPTED, NOT_STARTED, PromptHistory, missing_result
from holdfast.agent.model import ModelMessage, ToolCall, ToolMessage, UserMessage
from holdfast.agent.text import CHARS_MAX


def asks(*calls: str) -> ModelMessage:
    return ModelMessage(calls=tuple(ToolCall(each, "look", "{}") for each in calls))


def test_a_call_that_others_come_after_gets_a_word_in_place() -> None:
    mended: dict[str, str] = {"c2": "mended"}
    line = PromptHistory({"c1"}, mended)
    line.add("1", asks("c1", "c2", "c3"))
    line.add("2", UserMessage("on"))

    texts = [each.message.text for each in line.said]
    assert texts == ["", INTERRUPTED, "mended", NOT_STARTED, "on"]
    assert line.gaps == ["c1", "c3"]
    mended |= {"c1": INTERRUPTED, "c3": NOT_STARTED}
    line.repair("c1")
    line.repair("c3")
    assert (line.gaps, len(line.said)) == ([], 5)


def test_what_answers_nothing_and_what_says_nothing_is_left_out() -> None:
    line = PromptHistory(set(), {})
    line.add("0", ToolMessage("c1", "early"))
    line.add("1", asks("c1"))
    line.add("2", ToolMessage("c1", "once"))
    line.add("3", ToolMessage("c1", "twice"))
    line.add("4", ModelMessage())
    line.add("5", asks("c1"))

    assert [each.id for each in line.said] == ["1", "2"]
    assert (line.strays, line.open) == (2, {})


def test_a_call_at_the_end_is_open_until_it_is_mended() -> None:
    mended: dict[str, str] = {}
    line = PromptHistory(set(), mended)
    line.add("1", asks("c1", "c2"))
    line.settle()
    assert list(line.open) == ["c1", "c2"]

    mended["c2"] = "never"
    line.repair("c2")
    mended["c1"] = "never"
    line.settle()
    assert [each.message.text for each in line.said] == ["", "never", "never"]


def test_what_is_long_is_told_by_its_ends() -> None:
    line = PromptHistory(set(), {})
    line.add("1", asks("c1"))
    line.add("2", ToolMessage("c1", "x" * (CHARS_MAX + 1)))

    assert len(line.said[1].message.text) < CHARS_MAX
    assert line.chars < CHARS_MAX + 100


def test_only_what_began_may_have_happened() -> None:
    assert missing_result("c1", {"c1"}) == INTERRUPTED
    assert missing_result("c2", {"c1"}) == NOT_STARTED
