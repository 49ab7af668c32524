"""The token of a draft is valid in its place and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.app.wiring.local_server import local_endpoint
from holdfast.app.wiring.tokens import draft_endpoint, revoke_draft_token
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


async def test_one_token_is_stored_with_each_draft(bench: Bench) -> None:
    server, place = local_endpoint(bench.settings), drafted(bench) / "place"
    first = await draft_endpoint(server, place)
    second = await draft_endpoint(server, place)

    assert first == second
    assert first.token not in (None, server.token)
    kept = drafted(bench) / "exec-token"
    assert kept.stat().st_mode & 0o777 == 0o600


async def test_a_token_that_the_server_does_not_know_is_replaced(bench: Bench) -> None:
    server, place = local_endpoint(bench.settings), drafted(bench) / "place"
    kept = drafted(bench) / "exec-token"
    kept.write_text("wrong\n")
    kept.chmod(0o600)
    endpoint = await draft_endpoint(server, place)

    assert endpoint.token != "wrong"
    await (await endpoint.dial()).aclose()


async def test_a_draft_token_does_not_allow_operator_methods(bench: Bench) -> None:
    endpoint = await draft_endpoint(local_endpoint(bench.settings), drafted(bench) / "place")
    with pytest.raises(MethodUnknown):
        async with operating(endpoint.dial) as operator:
            await operator.processes()


async def test_a_revoked_token_is_refused(bench: Bench) -> None:
    endpoint = await draft_endpoint(local_endpoint(bench.settings), drafted(bench) / "place")
    await revoke_draft_token(bench.settings, drafted(bench))
    with pytest.raises(TokenRefused):
        await endpoint.dial()


async def test_revoking_does_not_start_a_server(bench: Bench) -> None:
    with pytest.raises(SocketRefused):
        await revoke_draft_token(bench.settings, drafted(bench))
