"""A scripted agent does in its directory what its script says, and dies as it says."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from holdfast.runners.model import AnyEvent, Delta, TextCompleted, ToolEnded, TurnEnded, TurnEnding
from holdfast.runners.rehearsal.runner import Rehearsal
from holdfast.runners.testing import PATIENCE, RunnerJournal, heard
from tests.contracts.test_runners import stage_in

pytestmark = pytest.mark.anyio


async def played(tmp_path: Path, *steps: dict[str, object]) -> list[AnyEvent]:
    (tmp_path / "root").mkdir(exist_ok=True)
    script = tmp_path / "scenario.json"
    script.write_text(json.dumps({"turn": [{"step": steps}]}))
    async with (
        stage_in(tmp_path, tmp_path / "root") as stage,
        Rehearsal(stage, script).converse(None, RunnerJournal()) as conversation,
    ):
        return await heard(conversation)


async def test_files_are_written_edited_and_removed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "old").write_text("a b a")
    events = await played(
        tmp_path,
        {"write": "deep/er/new", "content": "one two", "mode": 0o700},
        {"edit": "deep/er/new", "old": "two", "new": "three"},
        {"delete": "old"},
    )

    assert events[-1] == TurnEnded(TurnEnding.COMPLETED)
    assert (root / "deep/er/new").read_text() == "one three"
    assert (root / "deep/er/new").stat().st_mode & 0o777 == 0o700
    assert not (root / "old").exists()


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"edit": "twice", "old": "a", "new": "b"}, "'a' stands there 2 times"),
        ({"edit": "nowhere", "old": "a", "new": "b"}, "nowhere"),
        ({"write": "../out", "content": "x"}, ".."),
        ({"delete": "link/secret"}, "link"),
    ],
)
async def test_what_cannot_be_done_ends_the_turn(
    tmp_path: Path, step: dict[str, object], said: str
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "twice").write_text("a a")
    (tmp_path / "secret").write_text("kept")
    (root / "link").symlink_to(tmp_path)
    events = await played(tmp_path, step)
    (ended,) = (each for each in events if isinstance(each, ToolEnded))

    assert (ended.is_ok, said in ended.output) == (False, True)
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].ending is TurnEnding.FAILED
    assert (tmp_path / "secret").read_text() == "kept"
    assert not (tmp_path / "out").exists()


async def test_a_flood_is_bounded_in_what_is_kept(tmp_path: Path) -> None:
    events = await played(tmp_path, {"flood": 50_000_000})
    (ended,) = (each for each in events if isinstance(each, ToolEnded))

    assert len(ended.output) < 40_000
    assert ended.left_out > 49_000_000
    assert not any(isinstance(each, Delta) for each in events)


@pytest.mark.parametrize("status", [7, -9, -11])
async def test_a_crash_is_told_by_whoever_is_left(tmp_path: Path, status: int) -> None:
    events = await played(tmp_path, {"say": "Now"}, {"crash": status})
    ended = events[-1]

    assert isinstance(ended, TurnEnded)
    assert (ended.failure or {})["code"] == "RUNNER_ENDED"


async def test_who_hangs_is_killed_when_interrupted(tmp_path: Path) -> None:
    script = tmp_path / "scenario.json"
    script.write_text(json.dumps({"turn": [{"step": [{"say": "Now"}, {"hang": True}]}]}))
    events: list[AnyEvent] = []
    async with (
        stage_in(tmp_path, tmp_path) as stage,
        Rehearsal(stage, script).converse(None, RunnerJournal()) as conversation,
        anyio.create_task_group() as tasks,
    ):
        with anyio.fail_after(PATIENCE):
            async for batch in conversation.take_turn("go"):
                events += batch
                if any(
                    isinstance(each, TextCompleted) for each in batch
                ):  # it hears nothing after that
                    tasks.start_soon(conversation.interrupt)

    assert isinstance(events[-1], TurnEnded)
    assert events[-1].ending is TurnEnding.FAILED


async def test_what_is_to_stay_stays_and_a_pause_passes(tmp_path: Path) -> None:
    later = {"run": "until test -e now; do sleep 0.05; done; touch later", "stays": True}
    waiting = {"run": "touch now; until test -e later; do sleep 0.05; done"}
    events = await played(tmp_path, later, {"wait": 0.1}, waiting)

    assert events[-1] == TurnEnded(TurnEnding.COMPLETED)
    assert await anyio.Path(tmp_path / "root" / "later").exists()
