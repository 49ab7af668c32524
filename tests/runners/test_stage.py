"""Processes of an agent start in the project, with what they are given and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.exec.model import Output
from tests.contracts.test_runners import stage_in

pytestmark = pytest.mark.anyio


async def test_a_process_starts_in_the_project(tmp_path: Path) -> None:
    async with stage_in(tmp_path, tmp_path) as stage:
        process = await stage.start(
            "sh", "-c", "pwd; echo $TMPDIR $MORE", environment={"MORE": "x"}
        )
        said = [event.data async for event in process.events() if isinstance(event, Output)]

    assert b"".join(said).decode() == f"{tmp_path}\n{tmp_path / 'scratch'} x\n"
