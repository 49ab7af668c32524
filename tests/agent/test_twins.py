"""The workspace in memory does what the real one does."""

from __future__ import annotations

import pytest

from holdfast.agent.testing import FILES, WorkspaceContract
from holdfast.agent.twins import MemoryDesk, MemoryWorkspace

pytestmark = pytest.mark.anyio


class TestMemory(WorkspaceContract):
    """Files that are only in memory."""

    @pytest.fixture
    def workspace(self) -> MemoryWorkspace:
        return MemoryWorkspace(FILES)


async def test_a_desk_answers_what_it_was_told_to_and_then_refuses() -> None:
    desk = MemoryDesk(answers=["yes"])

    said = [await desk.ask("Sure?", choices=("yes", "no")) for _ in range(2)]

    assert said == ["yes", "no"]
    assert await desk.ask("What?") == ""
    assert desk.asked[0] == ("Sure?", "", ("yes", "no"), False)
