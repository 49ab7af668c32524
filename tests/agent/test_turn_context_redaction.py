"""No key that is known is told, whole, in pieces or encoded; all else is told as it is."""

from __future__ import annotations

from base64 import b64encode
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.agent.model import (
    MessageAppended,
    ModelMessage,
    ModelText,
    Task,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolUse,
    ToolUseEnded,
    TurnDelta,
    TurnDeltaKind,
    TurnNote,
    TurnOutcome,
    TurnOver,
    TurnQuestion,
)
from holdfast.agent.turn_context import KeyRedactor, TurnItem

KEY = "sk-there-0123456789abcdef"
HIDDEN = "[redacted:known]"


def told(word: str) -> list[TurnItem]:
    """Something of every kind, with a word in it."""
    return [
        MessageAppended("1", "", ToolMessage("c", f"a {word}\nb", is_error=True)),
        MessageAppended(
            "2", "1", ModelMessage("", (), (ToolCall("c", "run", f'{{"x":"{word}"}}'),), "p", "m")
        ),
        ToolUse("i", "run", f"run {word}", {"command": ["echo", word], "deep": {"er": word}}),
        ToolUseEnded("i", ToolResult(f"«{word}»", shown=word, paths=("a",), plan=(Task(1, word),))),
        TurnQuestion("q", word, word, (word, "no"), "i", is_permission=True),
        TurnNote(word, {"code": "X", "details": {"said": f"your key is {word}."}}),
        TurnOver(
            TurnOutcome.FAILED, {"userMessage": word, "retryable": False, "waits": [1, 2.5, None]}
        ),
    ]


@pytest.mark.promise("T6", "C6")
def test_a_key_is_hidden_wherever_it_stands() -> None:
    redactor = KeyRedactor(lambda: (KEY,))

    assert [redactor.over(each) for each in told(KEY)] == told(HIDDEN)


@pytest.mark.promise("T6", "C6")
def test_a_key_is_hidden_also_where_it_is_encoded() -> None:
    words = b64encode(f"Bearer {KEY} and more".encode()).decode()
    clean = KeyRedactor(lambda: (KEY,)).over(TurnNote(f"header: {words}"))

    assert b64encode(KEY.encode())[4:-4].decode() not in clean.text
    assert HIDDEN in clean.text


@pytest.mark.parametrize("known", [(), (KEY,)])
def test_what_holds_no_key_is_told_as_it_is(known: tuple[str, ...]) -> None:
    redactor = KeyRedactor(lambda: known)
    words = told('sk-proj-0123456789abcdefABCDEF "q" \\ é \x00 🔑')

    assert all(redactor.over(each) is each for each in words)


def test_a_key_that_is_found_later_is_hidden_from_then_on() -> None:
    known: list[str] = []
    redactor = KeyRedactor(lambda: tuple(known))
    assert redactor.over(TurnNote(KEY)) == TurnNote(KEY)
    known.append(KEY)

    assert redactor.over(TurnNote(KEY)) == TurnNote(HIDDEN)
    assert redactor.over_piece(TurnDelta("i", TurnDeltaKind.TEXT, KEY)).text == HIDDEN


@pytest.mark.promise("T6", "C6")
@given(st.lists(st.integers(0, len(KEY) + 10), max_size=5), st.sampled_from(TurnDeltaKind))
def test_a_key_in_pieces_is_never_shown(cuts: list[int], sort: TurnDeltaKind) -> None:
    whole = f"Here: {KEY} so."
    edges = [0, *sorted(cuts), len(whole)]
    pieces = [whole[start:end] for start, end in pairwise(edges)]
    redactor = KeyRedactor(lambda: (KEY,))
    shown = [redactor.over_piece(TurnDelta("i", sort, piece)).text for piece in pieces]

    assert "".join(shown) == f"Here: {HIDDEN} so."


@pytest.mark.parametrize(
    "end",
    [ModelText("i", "x"), ToolUseEnded("i", ToolResult("x")), TurnOver(TurnOutcome.COMPLETED)],
)
def test_an_item_that_is_over_has_no_beginnings_left(end: TurnItem) -> None:
    redactor = KeyRedactor(lambda: (KEY,))
    redactor.over_piece(TurnDelta("i", TurnDeltaKind.TEXT, KEY[:9]))
    redactor.over(end)

    assert redactor.over_piece(TurnDelta("i", TurnDeltaKind.TEXT, KEY[9:])).text == KEY[9:]
