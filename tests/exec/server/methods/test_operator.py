"""An operator sees all processes, and nobody who is attached notices."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tests.exec.server.housing import housed
from tests.exec.server.talking import Refused

pytestmark = pytest.mark.anyio


async def test_an_operator_reads_and_ends_what_another_started(tmp_path: Path) -> None:
    async with housed(tmp_path) as server, server.talk() as talk, server.talk() as operator:
        await talk.start("p", "sh", "-c", "echo out; exec sleep 100")
        await talk.until(lambda: talk.output("p") == b"out\n")

        (listed,) = (await operator.call("operator/list"))["processes"]
        read = {"processId": "p", "afterSeq": 0}
        page = await operator.call("operator/read", sessionId=talk.session, read=read)
        asked = {"sessionId": talk.session, "processId": "p"}
        await operator.call("operator/signal", **asked, signal="TERM")
        await talk.closed("p")
        ended = await operator.call("operator/terminate", **asked)

    assert (listed["sessionId"], listed["attached"]) == (talk.session, True)
    assert listed["process"]["argv"] == ["sh", "-c", "echo out; exec sleep 100"]
    assert [base64.b64decode(chunk["chunk"]) for chunk in page["chunks"]] == [b"out\n"]
    assert [n["exitCode"] for n in talk.of("p") if "exitCode" in n] == [143]
    assert ended == {"running": False}


async def test_a_session_that_is_not_there_is_refused(tmp_path: Path) -> None:
    async with housed(tmp_path) as server, server.talk() as operator:
        with pytest.raises(Refused) as refused:
            await operator.call("operator/terminate", sessionId="nobody", processId="p")

    assert refused.value.failure == "EXEC_SESSION_EXPIRED"
