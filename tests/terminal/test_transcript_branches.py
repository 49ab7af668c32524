"""A person goes back to what they have asked, whatever was kept between."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.agent.model import (
    AnyConversationRecord,
    HeadMoved,
    HistoryCompacted,
    MessageAppended,
    ModelMessage,
    Origin,
    Tokens,
    UsageRecorded,
    UserMessage,
)
from holdfast.terminal.transcript import Branches, Earlier, prompt_lines

FIRST = MessageAppended("1", "", UserMessage("First"))
ANSWER = MessageAppended("2", "1", ModelMessage("Yes"))
SECOND = MessageAppended("3", "2", UserMessage("Second"))
AGAIN = MessageAppended("4", "2", UserMessage("Second, again"))


def fed(*memos: AnyConversationRecord) -> Branches:
    branches = Branches()
    for memo in memos:
        branches.take(msgspec.json.encode(memo))
    return branches


@pytest.mark.parametrize(
    ("memos", "expected"),
    [
        ((), []),
        ((FIRST,), [Earlier("First", "")]),
        ((FIRST, ANSWER, SECOND), [Earlier("First", ""), Earlier("Second", "2")]),
        (
            (FIRST, ANSWER, SECOND, HeadMoved("2"), AGAIN),
            [Earlier("First", ""), Earlier("Second", "2", False), Earlier("Second, again", "2")],
        ),
        ((FIRST, ANSWER, HeadMoved("")), [Earlier("First", "", False)]),
        (
            (FIRST, ANSWER, HistoryCompacted("5", "2", "Short", "2", 9, 1)),
            [Earlier("First", "")],
        ),
        (
            (
                FIRST,
                MessageAppended("9", "1", UserMessage("And this", Origin.STEERING)),
                UsageRecorded("p", "m", Tokens(), None),
            ),
            [Earlier("First", "")],
        ),
    ],
)
def test_what_one_can_go_back_to(
    memos: tuple[AnyConversationRecord, ...], expected: list[Earlier]
) -> None:
    assert fed(*memos).prompts() == expected


@pytest.mark.parametrize("memo", [b"", b"{", b'{"memo":"of tomorrow"}', b"[" * 100_000])
def test_what_cannot_be_read_changes_nothing(memo: bytes) -> None:
    branches = fed(FIRST)
    branches.take(memo)

    assert branches.prompts() == [Earlier("First", "")]


def test_a_circle_ends() -> None:
    round_about = fed(
        MessageAppended("1", "2", UserMessage("a")), MessageAppended("2", "1", UserMessage("b"))
    )

    assert [each.is_here for each in round_about.prompts()] == [True, True]


def test_the_newest_are_listed_with_their_numbers() -> None:
    prompts = [Earlier(f"Say\n{number}", "") for number in range(1, 31)]
    prompts[-1] = Earlier("x" * 100, "", is_here=False)

    assert prompt_lines(prompts, width=30, most=3) == [
        " 28 Say 28",
        " 29 Say 29",
        " 30 (another branch) xxxxxxxx…",
    ]
