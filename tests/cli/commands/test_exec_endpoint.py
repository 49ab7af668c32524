"""`--server` and `--token-file` name the exec-server; without them it is the local one."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.app.settings import parse
from holdfast.app.wiring.local_server import ExecEndpoint
from holdfast.cli.commands.exec import endpoint_of
from holdfast.cli.declarations import Request
from holdfast.cli.failures import UsageWrong


def test_the_flags_name_the_server(tmp_path: Path) -> None:
    settings = parse({"HOLDFAST_HOME": "/h"}, person=tmp_path)
    token = tmp_path / "token"
    token.write_text("secret\n")
    token.chmod(0o600)

    def named(*given: tuple[str, str]) -> ExecEndpoint:
        return endpoint_of(Request("exec", given=given), settings)

    assert named() == ExecEndpoint("unix:///h/run/exec.sock", state=Path("/h/state/exec"))
    assert named(("--server", "ws://x:1")) == ExecEndpoint("ws://x:1")
    assert named(("--server", "ws://x:1"), ("--token-file", str(token))) == ExecEndpoint(
        "ws://x:1", token="secret"
    )
    for wrong in [
        (("--token-file", str(token)),),
        (("--server", "ws://x:1"), ("--token-file", str(tmp_path / "none"))),
    ]:
        with pytest.raises(UsageWrong):
            named(*wrong)
    assert not (tmp_path / "none").exists()
