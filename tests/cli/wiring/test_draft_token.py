"""A guest works in the place of a draft, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.declarations import Request
from holdfast.cli.wiring.draft_token import guest_of, turn_out
from holdfast.cli.wiring.local_server import server_of
from holdfast.exec import operating
from holdfast.rpc.failures import MethodUnknown, SocketRefused, TokenRefused
from tests.cli.workbenches import Bench, at_bench, needs_place

pytestmark = pytest.mark.anyio


@pytest.fixture
def bench() -> Iterator[Bench]:
    with at_bench() as made:
        needs_place(made)
        made.asked("draft", "open")
        yield made


def drafted(bench: Bench) -> Path:
    (draft,) = (bench.home / "state" / "workbench").glob("*/drafts/draft_*")
    return draft


async def test_a_token_is_kept_with_the_draft(bench: Bench) -> None:
    server, place = server_of(Request(), bench.settings), drafted(bench) / "place"
    first = await guest_of(server, place)
    second = await guest_of(server, place)

    assert first == second
    assert first.token not in (None, server.token)
    kept = drafted(bench) / "exec-token"
    assert kept.stat().st_mode & 0o777 == 0o600


async def test_one_that_the_server_does_not_know_is_replaced(bench: Bench) -> None:
    server, place = server_of(Request(), bench.settings), drafted(bench) / "place"
    kept = drafted(bench) / "exec-token"
    kept.write_text("wrong\n")
    kept.chmod(0o600)
    guest = await guest_of(server, place)

    assert guest.token != "wrong"
    await (await guest.dial()).aclose()


async def test_a_guest_is_no_operator(bench: Bench) -> None:
    guest = await guest_of(server_of(Request(), bench.settings), drafted(bench) / "place")
    with pytest.raises(MethodUnknown):
        async with operating(guest.dial) as operator:
            await operator.processes()


async def test_who_is_turned_out_cannot_come_back(bench: Bench) -> None:
    guest = await guest_of(server_of(Request(), bench.settings), drafted(bench) / "place")
    await turn_out(bench.settings, drafted(bench))
    with pytest.raises(TokenRefused):
        await guest.dial()


async def test_where_no_server_runs_none_is_started_for_that(bench: Bench) -> None:
    with pytest.raises(SocketRefused):
        await turn_out(bench.settings, drafted(bench))
