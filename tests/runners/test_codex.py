"""Codex that cannot be used says why, and is asked about what it does in our words."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.runners.codex import CodexRunner
from holdfast.runners.failures import RunnerUnavailable
from holdfast.runners.testing import Notebook
from tests.contracts.test_runners import stage_in

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("program", ["/nowhere/codex", "/bin/false", "/bin/cat"])
async def test_what_is_no_codex_is_unavailable(tmp_path: Path, program: str) -> None:
    async with stage_in(tmp_path, tmp_path) as stage:
        runner = CodexRunner(stage, program)
        health = await runner.health()
        with pytest.raises(RunnerUnavailable) as caught:
            async with runner.converse(None, Notebook()):
                pass

    assert (health.is_healthy, bool(health.reason)) == (False, True)
    assert "npm install" in caught.value.user_message
