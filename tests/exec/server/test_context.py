"""The handshake: once per connection, and nothing before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exec.server.housing import housed
from tests.exec.server.talking import Refused, Talk

pytestmark = pytest.mark.anyio


async def refusal(talk: Talk, method: str, **params: object) -> tuple[int, str]:
    with pytest.raises(Refused) as refused:
        await talk.call(method, **params)
    return refused.value.code, refused.value.text


async def test_nothing_is_served_before_the_handshake(tmp_path: Path) -> None:
    async with housed(tmp_path) as server, server.talk(introduced=False) as talk:
        before = await refusal(talk, "environment/status")
        failed = await refusal(talk, "initialize")
        unknown = await refusal(talk, "initialize", clientName="x", resumeSessionId="nope")
        process_started = await talk.call("initialize", clientName="x")
        between = await refusal(talk, "fs/readFile", path="file:///etc/hostname")
        await talk.tell({"method": "initialized"})
        status = await talk.call("environment/status")
        again = await refusal(talk, "initialize", clientName="x")
        odd = [
            await refusal(talk, "environment/status", x=1),
            await refusal(talk, "no/such", x=1),
        ]

    assert before == (-32600, "client must call initialize before using environment status methods")
    assert failed[0] == -32602
    assert unknown == (-32600, "unknown session id nope")
    assert set(process_started) == {"sessionId", "environmentInfo"}
    capabilities = process_started["environmentInfo"]["capabilities"]
    ours = {"closeStdin", "resize", "list", "kill", "firstRetainedSeq"}
    assert ours <= {name for name, is_there in capabilities.items() if is_there}
    assert between == (-32600, "client must send initialized before using filesystem methods")
    assert status == {"status": "ready"}
    assert again == (-32600, "initialize may only be sent once per connection")
    assert odd == [
        (-32602, "invalid type: map, expected unit"),
        (-32601, "exec-server stub does not implement `no/such` yet"),
    ]


async def test_a_client_need_not_wait_for_the_handshake(tmp_path: Path) -> None:
    async with housed(tmp_path) as server, server.talk(introduced=False) as talk:
        await talk.ask("initialize", {"clientName": "x"})
        await talk.tell({"method": "initialized"})
        status = await talk.call("environment/status")

    assert status == {"status": "ready"}


async def test_parameters_that_are_none_may_be_absent_null_or_empty(tmp_path: Path) -> None:
    async with housed(tmp_path) as server, server.talk() as talk:
        await talk.tell({"id": 101, "method": "environment/status"})
        await talk.tell({"id": 102, "method": "environment/status", "params": None})
        await talk.tell({"id": 103, "method": "environment/info", "params": {}})
        answers = [await talk.answer(number) for number in (101, 102, 103)]

    assert answers[:2] == [{"status": "ready"}] * 2
    assert set(answers[2]["shell"]) == {"name", "path"}
