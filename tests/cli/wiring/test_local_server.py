"""Find the local server, or start it."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.app.settings import parse
from holdfast.cli.declarations import Request
from holdfast.cli.failures import LocalServerUnavailable, UsageWrong
from holdfast.cli.wiring.local_server import Server, server_of
from holdfast.rpc.failures import SocketRefused, TokenRefused
from tests.cli.planes import plane_home, started_for

pytestmark = pytest.mark.anyio


def test_which_server_is_meant(tmp_path: Path) -> None:
    settings = parse({"HOLDFAST_HOME": "/h"}, person=tmp_path)
    token = tmp_path / "token"
    token.write_text("secret\n")
    token.chmod(0o600)

    def meant(*given: tuple[str, str]) -> Server:
        return server_of(Request("exec", given=given), settings)

    assert meant() == Server("unix:///h/run/exec.sock", state=Path("/h/state/exec"))
    assert meant(("--server", "ws://x:1")) == Server("ws://x:1")
    assert meant(("--server", "ws://x:1"), ("--token-file", str(token))) == Server(
        "ws://x:1", token="secret"
    )
    for wrong in [
        (("--token-file", str(token)),),
        (("--server", "ws://x:1"), ("--token-file", str(tmp_path / "none"))),
    ]:
        with pytest.raises(UsageWrong):
            meant(*wrong)
    assert not (tmp_path / "none").exists()


async def test_another_server_is_never_started(tmp_path: Path) -> None:
    with pytest.raises(SocketRefused):
        await Server(f"unix://{tmp_path}/x").dial_or_start()


async def test_a_local_server_is_started_once_and_found_again() -> None:
    with plane_home() as home:
        server = Server(f"unix://{home}/x.sock", state=home / "exec")
        for _ in range(2):
            await (await server.dial_or_start()).aclose()

        assert len(started_for(home, word="exec-server")) == 1


async def test_the_local_server_lets_nobody_in_who_cannot_read_its_token() -> None:
    with plane_home() as home:
        url = f"unix://{home}/x.sock"
        await (await Server(url, state=home / "exec").dial_or_start()).aclose()
        with pytest.raises(TokenRefused):
            await Server(url).dial()

        assert (home / "exec/token").stat().st_mode & 0o777 == 0o600


async def test_a_local_server_that_does_not_start_says_why() -> None:
    with plane_home() as home:
        server = Server(f"unix://{home}/x.sock", state=home / "exec")
        (home / "exec").mkdir()
        (home / "exec/sessions").write_text("in the way")
        with pytest.raises(LocalServerUnavailable) as failure:
            await server.dial_or_start()

    assert failure.value.reason != "it did not say why"
