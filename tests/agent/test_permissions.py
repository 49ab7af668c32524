"""What was allowed is remembered to the letter, as long as it was allowed for."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.agent.failures import PermissionRefused
from holdfast.agent.memory import MemoryToolContext
from holdfast.agent.permission_rules import (
    PermissionAnswer,
    PermissionMode,
    PermissionRequest,
    PermissionScope,
)
from holdfast.agent.permissions import Permissions

pytestmark = pytest.mark.anyio

WISH = PermissionRequest(PermissionScope.SERVER, "start an MCP server", (("command", "x"),))
SWAPPED = PermissionRequest(PermissionScope.SERVER, "start an MCP server", (("command", "y"),))


@pytest.mark.parametrize(
    ("answer", "same_session", "next_session"),
    [
        (PermissionAnswer.SESSION, True, False),
        (PermissionAnswer.ALWAYS, True, True),
    ],
)
async def test_how_long_a_leave_lasts(
    tmp_path: Path, answer: PermissionAnswer, same_session: bool, next_session: bool
) -> None:
    kept = tmp_path / "state" / "leaves.json"
    approvals = Permissions(kept)

    await approvals.require(WISH, MemoryToolContext(answers=[answer]))

    assert approvals.is_granted(WISH) is same_session
    assert Permissions(kept).is_granted(WISH) is next_session


@pytest.mark.promise("C19")
async def test_what_was_swapped_is_asked_for_again(tmp_path: Path) -> None:
    approvals = Permissions(tmp_path / "leaves.json")
    await approvals.require(WISH, MemoryToolContext(answers=[PermissionAnswer.ALWAYS]))

    await approvals.require(WISH, context := MemoryToolContext())
    assert context.asked == []
    with pytest.raises(PermissionRefused, match="refused"):
        await approvals.require(SWAPPED, context)
    assert len(context.asked) == 1


async def test_once_is_once() -> None:
    wish = PermissionRequest(PermissionScope.OPEN, "run a command", ())
    approvals = Permissions()
    await approvals.require(wish, MemoryToolContext(answers=[PermissionAnswer.ONCE]))

    assert not approvals.is_granted(wish)


@pytest.mark.parametrize("said", ["", "yes", PermissionAnswer.REFUSE])
async def test_anything_else_is_a_refusal(said: str) -> None:
    with pytest.raises(PermissionRefused):
        await Permissions().require(WISH, MemoryToolContext(answers=[said]))


async def test_where_nobody_is_asked_it_is_refused() -> None:
    context = MemoryToolContext()
    with pytest.raises(PermissionRefused, match="nothing beyond the sandbox"):
        await Permissions(asking=PermissionMode.NEVER).require(WISH, context)
    assert context.asked == []


@pytest.mark.parametrize("content", [b"", b"{", b'{"a": 1}', b"\xff", b'["\xff"]'])
async def test_a_file_that_cannot_be_read_allows_nothing(tmp_path: Path, content: bytes) -> None:
    kept = tmp_path / "leaves.json"
    kept.write_bytes(content)

    assert not Permissions(kept).is_granted(WISH)
