"""Find the local server, or start it."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.app.failures import LocalServerUnavailable
from holdfast.app.wiring.local_server import ExecEndpoint
from holdfast.rpc.failures import SocketRefused, TokenRefused
from tests.cli.planes import plane_home, started_for

pytestmark = pytest.mark.anyio


async def test_a_server_that_is_not_local_is_never_started(tmp_path: Path) -> None:
    with pytest.raises(SocketRefused):
        await ExecEndpoint(f"unix://{tmp_path}/x").dial_or_start()


async def test_a_local_server_is_started_once_and_found_again() -> None:
    with plane_home() as home:
        server = ExecEndpoint(f"unix://{home}/x.sock", state=home / "exec")
        for _ in range(2):
            await (await server.dial_or_start()).aclose()

        assert len(started_for(home, word="exec-server")) == 1


async def test_the_local_server_refuses_clients_without_its_token() -> None:
    with plane_home() as home:
        url = f"unix://{home}/x.sock"
        await (await ExecEndpoint(url, state=home / "exec").dial_or_start()).aclose()
        with pytest.raises(TokenRefused):
            await ExecEndpoint(url).dial()

        assert (home / "exec/token").stat().st_mode & 0o777 == 0o600


async def test_a_local_server_that_does_not_start_gives_the_reason() -> None:
    with plane_home() as home:
        server = ExecEndpoint(f"unix://{home}/x.sock", state=home / "exec")
        (home / "exec").mkdir()
        (home / "exec/sessions").write_text("in the way")
        with pytest.raises(LocalServerUnavailable) as failure:
            await server.dial_or_start()

    assert failure.value.reason != "it gave no reason"
