"""What our own agent tells is told in the words of every runner."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.agent.model import (
    AnyNews,
    Asking,
    Choice,
    Costing,
    Done,
    Moved,
    Noting,
    Over,
    Progress,
    Showing,
    Task,
    Telling,
    Tokens,
    UsedUp,
    Using,
)
from holdfast.agent.model import Ending as Ended
from holdfast.agent.model import Sort as Shown
from holdfast.runners import model as runner
from holdfast.runners.model import (
    AnyEvent,
    Asked,
    Delta,
    Ending,
    FilesChanged,
    Noticed,
    Planned,
    PlanStep,
    Remembered,
    Said,
    Sort,
    Thought,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    Used,
)
from holdfast.runners.native import translated


@pytest.mark.parametrize(
    ("news", "events"),
    [
        (Telling("1", "Hello"), [Said("1", "Hello")]),
        (Telling("1", "Hm", is_thinking=True), [Thought("1", "Hm")]),
        (Using("1", "look", "Look", {"a": 1}), [ToolStarted("1", "look", "Look", {"a": 1})]),
        (
            Using("1", "write", "Write", {"content": "x" * 3_000}),
            [ToolStarted("1", "write", "Write", {"content": "x" * 2_000 + "…"})],
        ),
        (UsedUp("1", Done("text")), [ToolEnded("1", True, "text")]),
        (
            UsedUp("1", Done("for the model", shown="for you", status=3)),
            [ToolEnded("1", False, "for you", status=3)],
        ),
        (
            UsedUp("1", Done("x", paths=("a",), plan=(Task(1, "do", Progress.BEGUN),))),
            [
                ToolEnded("1", True, "x"),
                FilesChanged("1", ("a",)),
                Planned((PlanStep("do", runner.Progress.BEGUN),)),
            ],
        ),
        (
            Asking("q", "May I?", "really", ("yes", "no"), "1", is_leave=True),
            [
                Asked(
                    "q",
                    "May I?",
                    "really",
                    (runner.Choice("yes"), runner.Choice("no", is_refusal=True)),
                    "1",
                    is_approval=True,
                )
            ],
        ),
        (
            Costing(Choice("p", "m"), Tokens(1, 2, 3), 4, 5, 0.5),
            [Used("p/m", 1, 2, 3, 4, 5, 0.5)],
        ),
        (Noting("n", {"code": "X"}), [Noticed("n", {"code": "X"})]),
        (Over(Ended.ABORTED), [TurnEnded(Ending.INTERRUPTED)]),
        (Over(Ended.FAILED, {"code": "X"}), [TurnEnded(Ending.FAILED, {"code": "X"})]),
    ],
)
def test_each_has_its_word(news: AnyNews, events: list[AnyEvent]) -> None:
    assert list(translated([news])) == events


def test_pieces_of_one_thing_are_joined() -> None:
    pieces = [Showing("1", Shown.TEXT, "He"), Showing("1", Shown.TEXT, "llo")]
    others = [Showing("1", Shown.THINKING, "Hm"), Showing("2", Shown.OUTPUT, "out")]

    assert list(translated([*pieces, *others])) == [
        Delta("1", Sort.TEXT, "Hello"),
        Delta("1", Sort.THOUGHT, "Hm"),
        Delta("2", Sort.OUTPUT, "out"),
    ]


def test_what_is_kept_is_kept_as_it_is() -> None:
    (remembered,) = translated([Moved("e1")])

    assert isinstance(remembered, Remembered)
    assert msgspec.json.decode(remembered.memo) == {"memo": "moved", "head": "e1"}


@pytest.mark.promise("A1")
def test_a_flood_is_shown_by_its_ends() -> None:
    (ended,) = translated([UsedUp("1", Done("x" * 1_000_000))])

    assert isinstance(ended, ToolEnded)
    assert (len(ended.output) < 40_000, ended.left_out > 900_000) == (True, True)
