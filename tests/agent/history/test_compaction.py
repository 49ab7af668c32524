"""What is too long is summarized, and cut only where that does no harm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.agent.history.compaction import (
    WORDS_CHARS_MAX,
    cut,
    finished,
    is_full,
    size,
    summary_prompt,
)
from holdfast.agent.history.tree import ConversationTree
from holdfast.agent.model import (
    AnyMessage,
    HistoryCompacted,
    MessageAppended,
    ModelMessage,
    Origin,
    Tokens,
    ToolCall,
    ToolMessage,
    UsageRecorded,
    UserMessage,
)

pytestmark = pytest.mark.promise("A10")


def tree_of(*messages: AnyMessage) -> ConversationTree:
    tree = ConversationTree()
    for at, message in enumerate(messages):
        tree.take(MessageAppended(f"e{at}", tree.head, message))
    return tree


def uses(call: str, tool: str = "look", arguments: str = "{}") -> ModelMessage:
    return ModelMessage(calls=(ToolCall(call, tool, arguments),))


def test_it_is_full_at_four_fifths_of_the_window() -> None:
    tree = tree_of(UserMessage("x" * 3_100))

    assert not is_full(tree, besides=0, window=1_000)
    assert is_full(tree, besides=100, window=1_000)
    assert not is_full(tree, besides=100, window=None)
    assert size(tree, besides=100) == 800


@pytest.mark.parametrize(("tokens", "expected"), [(26_000, False), (26_300, True)])
def test_a_window_that_nobody_knows_counts_as_one_of_a_local_server(
    tokens: int, expected: bool
) -> None:
    """32,768: more would be cut silently, or refused, by most servers that do not say it."""
    tree = tree_of(UserMessage("x" * tokens * 4))

    assert is_full(tree, besides=0, window=None) is expected


def test_what_was_billed_counts_more_than_what_is_guessed() -> None:
    tree = tree_of(UserMessage("x" * 4_000), ModelMessage("One"))
    tree.take(UsageRecorded("p", "m", Tokens(50, 0, 5)))

    assert size(tree, besides=4_000) == 55


def test_the_cut_is_before_what_the_person_said() -> None:
    long = "x" * 1_000
    tree = tree_of(
        UserMessage(long),
        ModelMessage(long),
        UserMessage(long),
        uses("c1"),
        ToolMessage("c1", long),
        UserMessage("notice", Origin.NOTICE),
        UserMessage("2", Origin.STEERING),
        ModelMessage("x"),
    )

    found = cut(tree, window=1_200, strikes=0)

    assert found is not None
    assert (found.keeps, len(found.old), found.kept_chars) == ("e6", 6, 2)


def test_in_a_long_turn_the_cut_is_before_an_answer() -> None:
    messages: list[AnyMessage] = [UserMessage("go")]
    for at in range(10):
        messages += [uses(f"c{at}"), ToolMessage(f"c{at}", "x" * 1_000)]
    tree = tree_of(*messages)

    found = cut(tree, window=2_500, strikes=0)

    assert found is not None
    assert (found.keeps, len(found.old)) == ("e17", 17)
    again = cut(tree, window=2_500, strikes=1)
    assert again is not None
    assert len(again.old) > len(found.old)


def test_there_is_nothing_to_be_won_from_a_summary_alone() -> None:
    tree = tree_of(UserMessage("go"))
    tree.take(HistoryCompacted("s", "e0", "x" * 10_000, "", 1, 1))

    assert cut(tree, window=1_000, strikes=0) is None
    assert cut(ConversationTree(), window=1_000, strikes=0) is None


def test_a_summary_has_the_files_and_the_words_of_the_person() -> None:
    tree = tree_of(
        UserMessage("Build a boat."),
        uses("c1", "read", '{"path":"a"}'),
        ToolMessage("c1", "x" * 5_000),
        uses("c2", "edit", '{"path":"b"}'),
        ToolMessage("c2", "done"),
        uses("c3", "read", '{"path":"b"}'),
        ToolMessage("c3", "done"),
        ModelMessage("Built."),
    )
    found = cut(tree, window=1_000, strikes=0)
    assert found is not None

    assert finished(" A boat. ", found) == (
        "A boat.\n\n<read-files>\na\n</read-files>\n\n<modified-files>\nb\n</modified-files>"
        "\n\n<person-messages>\n[person]\nBuild a boat.\n</person-messages>"
    )
    prompt = summary_prompt(found, window=None)
    assert (len(prompt.said), prompt.tools) == (1, ())
    text = prompt.said[0].message.text
    assert "[uses read]" in text
    assert "[… 3000 characters …]" in text
    assert len(summary_prompt(found, window=100).said[0].message.text) < 600


def test_the_person_is_kept_verbatim_also_over_several_summaries() -> None:
    tree = tree_of(UserMessage("Never touch a.txt."), ModelMessage("x" * 9_000))
    summary = ""
    for turn in range(3):
        found = cut(tree, window=20_000, strikes=0)
        assert found is not None
        summary = finished("S", found)
        assert summary.count("Never touch a.txt.") == 1
        assert (
            "Never touch" not in summary_prompt(found, window=None).said[0].message.text or not turn
        )
        tree.take(HistoryCompacted(f"s{turn}", tree.head, summary, found.keeps, 1, 1))
        for message in (UserMessage(f"more {turn}"), ModelMessage("x" * 9_000)):
            tree.take(MessageAppended(f"m{turn}-{message.text[:1]}", tree.head, message))
    assert "[person]\nmore 0\n\n[person]\nmore 1" in summary


def test_of_many_words_the_newest_are_kept() -> None:
    texts = [f"{at} " + "y" * 6_000 for at in range(9)]
    said = [each for text in texts for each in (UserMessage(text), ModelMessage("Well."))]
    found = cut(tree_of(*said), window=200_000, strikes=1)

    assert found is not None
    assert len(found.words) < WORDS_CHARS_MAX + 500
    kept = [at for at in range(9) if f"[person]\n{at} " in found.words]
    assert kept == [5, 6, 7, 8]
    assert texts[8] in found.words and texts[6] in found.words
    assert "more characters" in found.words
    assert "[5 older messages are only in the summary]" in found.words


def test_a_request_that_is_too_long_itself_shows_less() -> None:
    found = cut(tree_of(UserMessage("x" * 9_000), ModelMessage("Well.")), window=None, strikes=0)
    assert found is not None
    lengths = [
        len(summary_prompt(found, window=None, tries=tries).said[0].message.text)
        for tries in range(4)
    ]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[3] < lengths[0] / 4


@given(
    st.lists(st.integers(0, 3), max_size=12),
    st.integers(100, 3_000),
    st.integers(0, 2),
)
def test_no_cut_parts_a_call_from_its_result(steps: list[int], window: int, strikes: int) -> None:
    messages: list[AnyMessage] = [UserMessage("go")]
    for at, step in enumerate(steps):
        if step == 0:
            messages += [ModelMessage("One"), UserMessage("on")]
        else:
            calls = tuple(ToolCall(f"c{at}-{each}", "look", "{}") for each in range(step))
            messages.append(ModelMessage(calls=calls))
            messages += [ToolMessage(each.id, "x" * 500) for each in calls]
    tree = tree_of(*messages)
    found = cut(tree, window=window, strikes=strikes)
    if found is None:
        return
    tree.take(HistoryCompacted("s", tree.head, "S", found.keeps, 1, 1))

    assert (tree.line.strays, tree.line.gaps, list(tree.line.open)) == (0, [], [])
    assert len(tree.line.said) == len(messages) - len(found.old) + 1
