"""The scripted runner refuses what makes no sense before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.failures import Failure
from holdfast.runners.failures import ScenarioInvalid, SessionUnknown
from holdfast.runners.model import ToolEnded, TurnEnded, TurnEnding
from holdfast.runners.rehearsal.runner import DEMO, Rehearsal, write_sample
from holdfast.runners.testing import RunnerJournal, heard
from holdfast.world.failures import DiskMissing
from tests.contracts.test_runners import stage_in

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        (None, DiskMissing),
        (b"", ScenarioInvalid),
        (b"\xff", ScenarioInvalid),
    ],
)
async def test_a_scenario_that_makes_no_sense_is_refused(
    tmp_path: Path, text: bytes | None, failure: type[Failure]
) -> None:
    script = tmp_path / "scenario.toml"
    if text is not None:
        script.write_bytes(text)
    async with stage_in(tmp_path, tmp_path) as stage:
        runner = Rehearsal(stage, script)
        assert not (await runner.health()).is_healthy
        with pytest.raises(failure):
            async with runner.converse(None, RunnerJournal()):
                pass


@pytest.mark.parametrize("session", ["", "demo", "demo#", "demo#x", "demo#-1", "#²"])
async def test_only_its_own_words_continue(tmp_path: Path, session: str) -> None:
    async with stage_in(tmp_path, tmp_path) as stage:
        with pytest.raises(SessionUnknown):
            async with Rehearsal(stage, DEMO).converse(session, RunnerJournal()):
                pass


async def test_the_demo_mends_the_sample(tmp_path: Path) -> None:
    root = tmp_path / "project"
    write_sample(root)
    async with (
        stage_in(tmp_path, root) as stage,
        Rehearsal(stage, DEMO).converse(None, RunnerJournal()) as conversation,
    ):
        first, second = [await heard(conversation) for _ in range(2)]

    assert first[-1] == second[-1] == TurnEnded(TurnEnding.COMPLETED)
    assert [each.status for each in first if isinstance(each, ToolEnded)] == [1, 0, 0]
    assert (root / "NOTES.md").exists()
