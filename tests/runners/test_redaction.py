"""Of what a foreign agent tells, known keys are no part, however they come."""

from __future__ import annotations

import pytest

from holdfast.runners.memory import MemoryRunner
from holdfast.runners.model import (
    AnyEvent,
    Delta,
    DeltaKind,
    FilesChanged,
    NoticeIssued,
    SessionKnown,
    TextCompleted,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnEnding,
    TurnStarted,
)
from holdfast.runners.redaction import RedactingRunner
from holdfast.runners.testing import RunnerJournal

pytestmark = pytest.mark.anyio

KEY = "sk-there-0123456789abcdef"
HIDDEN = "[redacted:known]"


def told(word: str) -> list[AnyEvent]:
    """Something of many kinds, with a word in it."""
    return [
        ToolStarted("1", "run", f"echo {word}", {"command": ["echo", word]}),
        ToolEnded("1", True, f'"{word}"\n'),
        FilesChanged("1", ("a",)),
        NoticeIssued(word, {"details": {"said": word}}),
        TextCompleted("2", f"It is {word}."),
    ]


async def heard(runner: RedactingRunner) -> list[AnyEvent]:
    async with runner.converse(None, RunnerJournal()) as conversation:
        return [each async for batch in conversation.take_turn("Go") for each in batch]


@pytest.mark.promise("T6", "C6")
async def test_a_key_is_hidden_wherever_it_stands() -> None:
    events = await heard(RedactingRunner(MemoryRunner([list(told(KEY))]), (KEY,)))

    assert [each for each in events if not isinstance(each, SessionKnown | TurnStarted)] == [
        *told(HIDDEN),
        TurnEnded(TurnEnding.COMPLETED),
    ]


@pytest.mark.promise("T6", "C6")
@pytest.mark.parametrize("cut", range(1, len(KEY)))
async def test_a_key_in_pieces_is_never_shown(cut: int) -> None:
    words = f"Here: {KEY} so."
    pieces = [
        Delta("1", DeltaKind.TEXT, words[: 6 + cut]),
        Delta("1", DeltaKind.TEXT, words[6 + cut :]),
    ]
    events = await heard(RedactingRunner(MemoryRunner([list(pieces)]), (KEY,)))
    shown = [each.text for each in events if isinstance(each, Delta)]

    assert "".join(shown) == f"Here: {HIDDEN} so."
    assert "" not in shown


async def test_what_holds_no_key_is_told_as_it_is() -> None:
    script = [*told("nothing"), Delta("3", DeltaKind.OUTPUT, "é \x00 🔑")]
    plain = await heard(RedactingRunner(MemoryRunner([list(script)]), ()))

    assert await heard(RedactingRunner(MemoryRunner([list(script)]), (KEY,))) == plain
    assert [each for each in plain if each in script] == script
