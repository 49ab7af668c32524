"""Of what a foreign agent tells, known keys are no part, however they come."""

from __future__ import annotations

import pytest

from holdfast.runners.memory import Puppet
from holdfast.runners.model import (
    AnyEvent,
    Delta,
    Ending,
    FilesChanged,
    Noticed,
    Said,
    SessionKnown,
    Sort,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from holdfast.runners.redaction import Veiled
from holdfast.runners.testing import Notebook

pytestmark = pytest.mark.anyio

KEY = "sk-there-0123456789abcdef"
HIDDEN = "[redacted:known]"


def told(word: str) -> list[AnyEvent]:
    """Something of many kinds, with a word in it."""
    return [
        ToolStarted("1", "run", f"echo {word}", {"command": ["echo", word]}),
        ToolEnded("1", True, f'"{word}"\n'),
        FilesChanged("1", ("a",)),
        Noticed(word, {"details": {"said": word}}),
        Said("2", f"It is {word}."),
    ]


async def heard(runner: Veiled) -> list[AnyEvent]:
    async with runner.converse(None, Notebook()) as conversation:
        return [each async for batch in conversation.take_turn("Go") for each in batch]


@pytest.mark.promise("T6", "C6")
async def test_a_key_is_hidden_wherever_it_stands() -> None:
    events = await heard(Veiled(Puppet([list(told(KEY))]), (KEY,)))

    assert [each for each in events if not isinstance(each, SessionKnown | TurnStarted)] == [
        *told(HIDDEN),
        TurnEnded(Ending.COMPLETED),
    ]


@pytest.mark.promise("T6", "C6")
@pytest.mark.parametrize("cut", range(1, len(KEY)))
async def test_a_key_in_pieces_is_never_shown(cut: int) -> None:
    words = f"Here: {KEY} so."
    pieces = [Delta("1", Sort.TEXT, words[: 6 + cut]), Delta("1", Sort.TEXT, words[6 + cut :])]
    events = await heard(Veiled(Puppet([list(pieces)]), (KEY,)))
    shown = [each.text for each in events if isinstance(each, Delta)]

    assert "".join(shown) == f"Here: {HIDDEN} so."
    assert "" not in shown


async def test_what_holds_no_key_is_told_as_it_is() -> None:
    script = [*told("nothing"), Delta("3", Sort.OUTPUT, "é \x00 🔑")]
    plain = await heard(Veiled(Puppet([list(script)]), ()))

    assert await heard(Veiled(Puppet([list(script)]), (KEY,))) == plain
    assert [each for each in plain if each in script] == script
