"""Conversations of other tools become records in which every turn is over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.foreign_transcripts import (
    TEXT_MOST,
    Asked,
    Did,
    Over,
    Step,
    moment,
    output,
    records_of,
    shortened,
)
from holdfast.host.model import (
    AnyRecord,
    EventRecorded,
    PromptQueued,
    SessionOpened,
    ToolsRepaired,
    TurnBegun,
    TurnClosed,
)
from holdfast.host.session import SessionPhase, SessionState, fold
from holdfast.runners.model import (
    SessionKnown,
    TextCompleted,
    ThinkingCompleted,
    ToolEnded,
    ToolStarted,
    TurnEnding,
)

OPENED = SessionOpened("s", "/p", "d", "codex", 1)
SAID = TextCompleted("i", "Yes.")
STARTED, ENDED = ToolStarted("t", "shell", "ls"), ToolEnded("t", True, "a")


def begun(turn: int, text: str, at_ms: int) -> list[AnyRecord]:
    return [PromptQueued(f"imported-{turn}", turn, text, at_ms), TurnBegun(turn, at_ms)]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], []),
        (
            [Asked("Go", 5), Did(SAID, 6)],
            [*begun(1, "Go", 5), EventRecorded(1, SAID), TurnClosed(1, TurnEnding.COMPLETED, 6)],
        ),
        (
            [Asked("Go", 5), Asked("Go", 5), Did(STARTED, 6), Asked("Stop", 7)],
            [
                *begun(1, "Go", 5),
                EventRecorded(1, STARTED),
                ToolsRepaired(1, ("t",)),
                TurnClosed(1, TurnEnding.INTERRUPTED, 7),
                *begun(2, "Stop", 7),
                TurnClosed(2, TurnEnding.INTERRUPTED, 7),
            ],
        ),
        (
            [Did(STARTED, 5), Did(ENDED, 6), Did(ENDED, 6), Over(TurnEnding.COMPLETED, 0)],
            [
                *begun(1, "(It went on by itself.)", 5),
                EventRecorded(1, STARTED),
                EventRecorded(1, ENDED),
                TurnClosed(1, TurnEnding.COMPLETED, 6),
            ],
        ),
        ([Over(TurnEnding.COMPLETED, 5)], []),
    ],
)
def test_steps_become_turns(steps: list[Step], expected: list[AnyRecord]) -> None:
    told = list(records_of(OPENED, steps, known="word"))

    assert told == [OPENED, EventRecorded(0, SessionKnown("word")), *expected]
    assert list(records_of(OPENED, steps, known=None)) == [OPENED, *expected]


STEPS = st.lists(
    st.one_of(
        st.builds(Asked, st.sampled_from(["a", "b"]), st.integers(0, 9)),
        st.builds(
            Did, st.sampled_from([SAID, ThinkingCompleted("j", "?"), STARTED, ENDED]), st.just(1)
        ),
        st.builds(Over, st.sampled_from(list(TurnEnding)), st.just(2)),
    )
)


@given(STEPS)
def test_whatever_was_written_down_the_session_is_idle(steps: list[Step]) -> None:
    session = fold(SessionState(), records_of(OPENED, steps, known="word"))

    assert (session.phase, session.waiting, session.tools) == (SessionPhase.IDLE, (), ())
    assert session.runner_session == "word"


def test_what_is_too_long_says_so() -> None:
    long = "x" * (TEXT_MOST + 3)

    assert shortened("short") == "short"
    assert shortened(long) == "x" * TEXT_MOST + "\n[3 characters left out]"
    assert output("t", long, is_ok=True) == ToolEnded("t", True, "x" * TEXT_MOST, 3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2026-11-15T19:42:33.259Z", 1794771753259), ("", 0), ("soon", 0), ("0001-01-01T00:00Z", 0)],
)
def test_times_are_read(text: str, expected: int) -> None:
    assert moment(text) == expected
