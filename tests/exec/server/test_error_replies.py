"""What cannot be read is answered, and the conversation goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exec.server.housing import housed

pytestmark = pytest.mark.anyio


async def test_nonsense_is_answered_under_the_id_minus_one(tmp_path: Path) -> None:
    async with housed(tmp_path) as server, server.talk() as talk:
        for raw in (b"garbage", b'{"id":77}', b"[]", b"\xff", b'{"id":[1],"method":"x"}'):
            await talk.tell(raw)
        status = await talk.call("environment/status")

    assert status == {"status": "ready"}
    assert [(stray["id"], stray["error"]["code"]) for stray in talk.strays] == [(-1, -32600)] * 5


async def test_unknown_news_and_unexpected_answers_are_passed_over(tmp_path: Path) -> None:
    async with housed(tmp_path) as server, server.talk() as talk:
        await talk.tell({"method": "no/such", "params": {}})
        await talk.tell({"id": 9, "result": {}})
        await talk.tell(b'{"method":"process/taken","params":{"processId":"\xff","seq":1}}')
        await talk.tell(b'{"method":"process/taken","params":{"processId":"p","seq":"1"}}')
        status = await talk.call("environment/status")

    assert (status, talk.strays) == ({"status": "ready"}, [])
