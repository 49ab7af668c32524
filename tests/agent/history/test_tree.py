"""A conversation is what was kept of it, and one damaged record loses nothing but itself."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.agent.history.tree import INTERRUPTED, NOT_STARTED, SUMMARY, ConversationTree, repairs
from holdfast.agent.model import (
    AnyConversationRecord,
    AnyMessage,
    HeadMoved,
    HistoryCompacted,
    MessageAppended,
    ModelMessage,
    SteeringDequeued,
    SteeringQueued,
    Tokens,
    ToolCall,
    ToolCallRepaired,
    ToolCallStarted,
    ToolMessage,
    UsageRecorded,
    UserMessage,
)
from tests.agent.conversing import in_short

ASKS = ModelMessage(calls=(ToolCall("c1", "look", "{}"), ToolCall("c2", "look", "{}")))


def tree_of(*memos: AnyConversationRecord) -> ConversationTree:
    tree = ConversationTree()
    for memo in memos:
        tree.read(msgspec.json.encode(memo))
    return tree


def story(*messages: AnyMessage) -> list[AnyConversationRecord]:
    """Messages that follow one another, named by their places."""
    return [
        MessageAppended(f"e{at}", f"e{at - 1}" if at else "", each)
        for at, each in enumerate(messages)
    ]


def history(tree: ConversationTree) -> list[str]:
    return [in_short(each) for each in tree.line.said]


def test_what_follows_is_the_head_and_a_move_begins_a_branch() -> None:
    memos = story(UserMessage("1"), ModelMessage("One"), UserMessage("2"))
    tree = tree_of(*memos, HeadMoved("e1"), MessageAppended("b", "e1", UserMessage("3")))

    assert (tree.head, history(tree)) == ("b", ["user: 1", "model: One", "user: 3"])
    tree.take(HeadMoved("e2"))
    assert history(tree) == ["user: 1", "model: One", "user: 2"]
    tree.take(HeadMoved(""))
    assert history(tree) == []
    tree.take(HeadMoved("nowhere"))
    assert (tree.head, tree.skipped) == ("", 1)


def test_a_summary_stands_in_place_of_what_it_covers_on_its_branch_only() -> None:
    memos = story(UserMessage("1"), ModelMessage("One"), UserMessage("2"), ModelMessage("Two"))
    tree = tree_of(*memos, HistoryCompacted("s", "e3", "Short.", "e2", 10, 5))

    assert history(tree) == [f"user: {SUMMARY}Short.", "user: 2", "model: Two"]
    tree.take(MessageAppended("n", "s", UserMessage("3")))
    assert history(tree)[-1] == "user: 3"
    tree.take(HistoryCompacted("t", "n", "Shorter.", "", 10, 5))
    assert history(tree) == [f"user: {SUMMARY}Shorter."]
    tree.take(HeadMoved("e3"))
    assert len(tree.line.said) == 4
    assert [each.id for each in tree.way()] == ["e3", "e2", "e1", "e0"]


def test_a_summary_whose_beginning_was_lost_stands_for_nothing() -> None:
    memos = story(UserMessage("1"), ModelMessage("One"))

    assert history(tree_of(*memos, HistoryCompacted("s", "e1", "Short.", "lost", 1, 1))) == [
        "user: 1",
        "model: One",
    ]


def test_what_was_added_waits_until_it_is_taken() -> None:
    tree = tree_of(
        SteeringQueued("q1", "a"),
        SteeringQueued("q2", "b"),
        SteeringDequeued("q1"),
        SteeringDequeued("never"),
    )

    assert tree.queued == {"q2": "b"}


def test_what_was_paid_is_summed_and_measures_the_line() -> None:
    spent = UsageRecorded("p", "m", Tokens(100, 50, 10), 0.5)
    tree = tree_of(*story(UserMessage("1"), ModelMessage("One")), spent, spent)

    assert (tree.input, tree.cached, tree.output, tree.cost_usd) == (200, 100, 20, 1.0)
    assert (tree.measured, tree.estimate) == (110, 110)
    tree.take(MessageAppended("n", "e1", UserMessage("x" * 40)))
    assert tree.estimate == 120
    tree.take(HeadMoved("e0"))
    assert tree.estimate == 0


@pytest.mark.promise("A6")
@pytest.mark.parametrize(
    "broken", [b"", b"{", b"null", b'{"memo":"unknown"}', b'{"memo":"entered","id":1}', b"\xff"]
)
def test_what_cannot_be_read_is_counted_and_loses_only_itself(broken: bytes) -> None:
    tree = ConversationTree()
    memos = [
        msgspec.json.encode(each) for each in story(UserMessage("1"), ASKS, ToolMessage("c1", "r"))
    ]
    for memo in (memos[0], broken, *memos[1:]):
        tree.read(memo)

    assert (tree.skipped, len(tree.line.said)) == (1, 3)


@pytest.mark.promise("A6")
@pytest.mark.parametrize(
    ("lost", "left"),
    [
        (0, ["model:  [look] [look]", "tool: r1", "tool: r2", "user: 2"]),
        (1, ["user: 1", "user: 2"]),
        (2, ["user: 1", "model:  [look] [look]", "tool: r2", f"tool: {INTERRUPTED}", "user: 2"]),
        (3, ["user: 1", "model:  [look] [look]", "tool: r1", f"tool: {NOT_STARTED}", "user: 2"]),
        (4, ["user: 1", "model:  [look] [look]", "tool: r1", "tool: r2"]),
    ],
)
def test_any_lost_entry_leaves_the_others_and_a_valid_history(lost: int, left: list[str]) -> None:
    memos = story(
        UserMessage("1"),
        ASKS,
        ToolMessage("c1", "r1"),
        ToolMessage("c2", "r2"),
        UserMessage("2"),
    )
    kept = [each for at, each in enumerate(memos) if at != lost]

    assert history(tree_of(ToolCallStarted("c1"), *kept)) == left


def test_the_whole_result_of_a_call_is_found() -> None:
    tree = tree_of(*story(UserMessage("1"), ASKS, ToolMessage("c1", "x" * 100_000)))

    assert tree.result("c1") == "x" * 100_000
    assert tree.result("c2") is None


CALLS = st.sampled_from(["c1", "c2", "c3"])
MESSAGES = st.one_of(
    st.builds(UserMessage, st.sampled_from(["1", "2"])),
    st.builds(
        ModelMessage,
        st.sampled_from(["", "One"]),
        calls=st.lists(st.builds(ToolCall, CALLS, st.just("look"), st.just("{}")), max_size=3).map(
            tuple
        ),
    ),
    st.builds(ToolMessage, CALLS, st.just("r")),
)
NAMES = st.sampled_from([*"abcdefgh", ""])
MEMOS = st.one_of(
    st.builds(MessageAppended, NAMES, NAMES, MESSAGES),
    st.builds(HistoryCompacted, NAMES, NAMES, st.just("S"), NAMES, st.just(1), st.just(1)),
    st.builds(HeadMoved, NAMES),
    st.builds(ToolCallStarted, CALLS),
    st.builds(ToolCallRepaired, CALLS, st.just("mended")),
    st.builds(UsageRecorded, st.just("p"), st.just("m"), st.builds(Tokens)),
)


@pytest.mark.promise("A8")
@given(st.lists(MEMOS, max_size=30), st.integers(0, 30))
def test_whatever_was_kept_the_line_is_valid_and_repairs_are_final(
    memos: list[AnyConversationRecord], looked: int
) -> None:
    tree, later = ConversationTree(), ConversationTree()
    for at, memo in enumerate(memos):
        tree.take(memo)
        if at == looked:
            assert_valid(tree)  # from here on it grows with every memo
        later.take(memo)
    for memo in repairs(tree):
        tree.take(memo)

    assert not tree.line.open
    assert repairs(tree) == ()
    assert_valid(tree)
    for memo in repairs(later):
        later.take(memo)
    assert_valid(later)


def assert_valid(tree: ConversationTree) -> None:
    """Every call is answered once, right after it, and nothing else is answered."""
    waiting: set[str] = set()
    seen: set[str] = set()
    for each in tree.line.said:
        match each.message:
            case ToolMessage(call):
                assert call in waiting
                waiting.remove(call)
            case ModelMessage(text, _, calls):
                assert not waiting
                assert text or calls
                waiting = {call.id for call in calls}
                assert len(waiting) == len(calls)
                assert not waiting & seen
                seen |= waiting
            case _:
                assert not waiting
    assert waiting == set(tree.line.open)
