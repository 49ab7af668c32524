"""What was allowed is remembered to the letter, as long as it was allowed for."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.agent.failures import LeaveRefused
from holdfast.agent.memory import MemoryDesk
from holdfast.agent.permission_rules import Answer, Asking, Reach, Wish
from holdfast.agent.permissions import Approvals

pytestmark = pytest.mark.anyio

WISH = Wish(Reach.SERVER, "start an MCP server", (("command", "x"),))
SWAPPED = Wish(Reach.SERVER, "start an MCP server", (("command", "y"),))


@pytest.mark.parametrize(
    ("answer", "same_session", "next_session"),
    [
        (Answer.SESSION, True, False),
        (Answer.ALWAYS, True, True),
    ],
)
async def test_how_long_a_leave_lasts(
    tmp_path: Path, answer: Answer, same_session: bool, next_session: bool
) -> None:
    kept = tmp_path / "state" / "leaves.json"
    approvals = Approvals(kept)

    await approvals.require(WISH, MemoryDesk(answers=[answer]))

    assert approvals.is_granted(WISH) is same_session
    assert Approvals(kept).is_granted(WISH) is next_session


@pytest.mark.promise("C19")
async def test_what_was_swapped_is_asked_for_again(tmp_path: Path) -> None:
    approvals = Approvals(tmp_path / "leaves.json")
    await approvals.require(WISH, MemoryDesk(answers=[Answer.ALWAYS]))

    await approvals.require(WISH, desk := MemoryDesk())
    assert desk.asked == []
    with pytest.raises(LeaveRefused, match="refused"):
        await approvals.require(SWAPPED, desk)
    assert len(desk.asked) == 1


async def test_once_is_once() -> None:
    wish = Wish(Reach.OPEN, "run a command", ())
    approvals = Approvals()
    await approvals.require(wish, MemoryDesk(answers=[Answer.ONCE]))

    assert not approvals.is_granted(wish)


@pytest.mark.parametrize("said", ["", "yes", Answer.REFUSE])
async def test_anything_else_is_a_refusal(said: str) -> None:
    with pytest.raises(LeaveRefused):
        await Approvals().require(WISH, MemoryDesk(answers=[said]))


async def test_where_nobody_is_asked_it_is_refused() -> None:
    desk = MemoryDesk()
    with pytest.raises(LeaveRefused, match="nothing beyond the sandbox"):
        await Approvals(asking=Asking.NEVER).require(WISH, desk)
    assert desk.asked == []


@pytest.mark.parametrize("content", [b"", b"{", b'{"a": 1}', b"\xff", b'["\xff"]'])
async def test_a_file_that_cannot_be_read_allows_nothing(tmp_path: Path, content: bytes) -> None:
    kept = tmp_path / "leaves.json"
    kept.write_bytes(content)

    assert not Approvals(kept).is_granted(WISH)
