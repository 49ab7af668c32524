"""Processes of an agent start in the project, with what they are given and nothing else."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.exec import Process
from holdfast.exec.model import Output
from holdfast.world import MARK
from tests.contracts.test_runners import stage_in
from tests.exec.server.talking import until
from tests.journeys.stage import linux_only
from tests.world.test_processes_process_marks import is_alive

pytestmark = pytest.mark.anyio


async def test_a_process_starts_in_the_project(tmp_path: Path) -> None:
    async with stage_in(tmp_path, tmp_path) as stage:
        process = await stage.start(
            "sh", "-c", "pwd; echo $TMPDIR $MORE", environment={"MORE": "x"}
        )
        said = [event.data async for event in process.events() if isinstance(event, Output)]

    assert b"".join(said).decode() == f"{tmp_path}\n{tmp_path / 'scratch'} x\n"


@linux_only
@pytest.mark.promise("A11")
async def test_what_an_agent_leaves_is_ended_with_it_or_before_the_next(tmp_path: Path) -> None:
    left = "setsid sleep 300 & echo $!"
    async with stage_in(tmp_path, tmp_path) as stage:
        named = replace(stage, session=uuid.uuid4().hex)
        async with named.agent("sh", "-c", left) as process:
            own = int(await said_by(process))
            assert is_alive(own)
        await until(lambda: not is_alive(own))

        env = {MARK: f"{named.session}/before"}
        before = int(await said_by(await named.start("sh", "-c", left, environment=env)))
        named.clear()
        await until(lambda: not is_alive(before))


async def said_by(process: Process) -> bytes:
    async for event in process.events():
        if isinstance(event, Output):
            return event.data
    raise AssertionError("it says nothing")
