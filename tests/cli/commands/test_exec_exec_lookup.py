"""Which process a person means."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli.commands.exec import looked_up
from holdfast.cli.declarations import Request
from holdfast.cli.failures import UsageWrong
from holdfast.exec import Client, operating
from holdfast.exec.failures import ProcessUnknown
from holdfast.exec.model import Command
from holdfast.rpc import connect_websocket
from tests.exec.server.talking import PATH, served

pytestmark = pytest.mark.anyio


async def test_one_is_found_and_none_and_many_are_refused(tmp_path: Path) -> None:
    command = Command(("true",), cwd="/", env=PATH)
    async with (
        served(tmp_path) as server,
        Client(lambda: connect_websocket(server.url)) as client,
        operating(lambda: connect_websocket(server.url)) as operator,
    ):
        for name in ("true-1", "true-2"):
            await client.start(command, process_id=name)
        found = await looked_up(Request("logs", argument="true-2"), operator)
        with pytest.raises(UsageWrong, match=r"true-1.*true-2"):
            await looked_up(Request("logs", argument="true"), operator)
        with pytest.raises(UsageWrong, match="say which"):
            await looked_up(Request("logs"), operator)
        with pytest.raises(ProcessUnknown):
            await looked_up(Request("logs", argument="false"), operator)

    assert found.process.process_id == "true-2"
