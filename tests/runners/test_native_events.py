"""What our own agent tells is told in the words of every runner."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.agent.model import (
    AnyTurnEvent,
    HeadMoved,
    ModelChoice,
    ModelText,
    Task,
    TaskProgress,
    Tokens,
    ToolResult,
    ToolUse,
    ToolUseEnded,
    TurnDelta,
    TurnDeltaKind,
    TurnNote,
    TurnOutcome,
    TurnOver,
    TurnQuestion,
    TurnUsage,
)
from holdfast.runners import model as runner
from holdfast.runners.model import (
    AnyEvent,
    Delta,
    DeltaKind,
    FilesChanged,
    MemoryRecorded,
    NoticeIssued,
    PlanStep,
    PlanUpdated,
    QuestionAsked,
    TextCompleted,
    ThinkingCompleted,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnEnding,
    UsageUpdated,
)
from holdfast.runners.native import translated


@pytest.mark.parametrize(
    ("news", "events"),
    [
        (ModelText("1", "Hello"), [TextCompleted("1", "Hello")]),
        (ModelText("1", "Hm", is_thinking=True), [ThinkingCompleted("1", "Hm")]),
        (ToolUse("1", "look", "Look", {"a": 1}), [ToolStarted("1", "look", "Look", {"a": 1})]),
        (
            ToolUse("1", "write", "Write", {"content": "x" * 3_000}),
            [ToolStarted("1", "write", "Write", {"content": "x" * 2_000 + "…"})],
        ),
        (ToolUseEnded("1", ToolResult("text")), [ToolEnded("1", True, "text")]),
        (
            ToolUseEnded("1", ToolResult("for the model", shown="for you", status=3)),
            [ToolEnded("1", False, "for you", status=3)],
        ),
        (
            ToolUseEnded(
                "1", ToolResult("x", paths=("a",), plan=(Task(1, "do", TaskProgress.BEGUN),))
            ),
            [
                ToolEnded("1", True, "x"),
                FilesChanged("1", ("a",)),
                PlanUpdated((PlanStep("do", runner.PlanProgress.BEGUN),)),
            ],
        ),
        (
            TurnQuestion("q", "May I?", "really", ("yes", "no"), "1", is_permission=True),
            [
                QuestionAsked(
                    "q",
                    "May I?",
                    "really",
                    (runner.AnswerChoice("yes"), runner.AnswerChoice("no", is_refusal=True)),
                    "1",
                    is_approval=True,
                )
            ],
        ),
        (
            TurnUsage(ModelChoice("p", "m"), Tokens(1, 2, 3), 4, 5, 0.5),
            [UsageUpdated("p/m", 1, 2, 3, 4, 5, 0.5)],
        ),
        (TurnNote("n", {"code": "X"}), [NoticeIssued("n", {"code": "X"})]),
        (TurnOver(TurnOutcome.ABORTED), [TurnEnded(TurnEnding.INTERRUPTED)]),
        (
            TurnOver(TurnOutcome.FAILED, {"code": "X"}),
            [TurnEnded(TurnEnding.FAILED, {"code": "X"})],
        ),
    ],
)
def test_each_has_its_word(news: AnyTurnEvent, events: list[AnyEvent]) -> None:
    assert list(translated([news])) == events


def test_pieces_of_one_thing_are_joined() -> None:
    pieces = [TurnDelta("1", TurnDeltaKind.TEXT, "He"), TurnDelta("1", TurnDeltaKind.TEXT, "llo")]
    others = [
        TurnDelta("1", TurnDeltaKind.THINKING, "Hm"),
        TurnDelta("2", TurnDeltaKind.OUTPUT, "out"),
    ]

    assert list(translated([*pieces, *others])) == [
        Delta("1", DeltaKind.TEXT, "Hello"),
        Delta("1", DeltaKind.THOUGHT, "Hm"),
        Delta("2", DeltaKind.OUTPUT, "out"),
    ]


def test_what_is_kept_is_kept_as_it_is() -> None:
    (remembered,) = translated([HeadMoved("e1")])

    assert isinstance(remembered, MemoryRecorded)
    assert msgspec.json.decode(remembered.memo) == {"memo": "moved", "head": "e1"}


@pytest.mark.promise("A1")
def test_a_flood_is_shown_by_its_ends() -> None:
    (ended,) = translated([ToolUseEnded("1", ToolResult("x" * 1_000_000))])

    assert isinstance(ended, ToolEnded)
    assert (len(ended.output) < 40_000, ended.left_out > 900_000) == (True, True)
