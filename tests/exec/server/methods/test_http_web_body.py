"""A body is told no faster than it is taken, and no longer than it is wanted."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from holdfast.exec.failures import HttpFailed
from holdfast.exec.server.methods.http import in_time
from tests.exec.client.test_http import endless
from tests.exec.server.housing import housed
from tests.exec.server.methods.test_http import asking

pytestmark = pytest.mark.anyio


async def test_who_wants_no_more_is_told_no_more(tmp_path: Path) -> None:
    async with endless() as web, housed(tmp_path) as server, server.talk() as talk:
        params = asking(web.url, streamResponse=True, unreadBytesMax=1000)
        head = await talk.call("http/request", **params)
        assert head["isPaced"]
        await talk.tell(
            {
                "method": "http/request/taken",
                "params": {"requestId": "r", "totalBytes": 0, "isOver": True},
            }
        )
        with anyio.fail_after(60):
            await web.left.wait()
        await talk.until(lambda: any(news["params"].get("done") for news in talk.news))


async def test_what_takes_too_long_is_said() -> None:
    with pytest.raises(HttpFailed) as failed:
        with in_time("http://x", 0.01):
            await anyio.sleep(10)
    assert failed.value == HttpFailed(url="http://x", reason="no whole answer within 0.01 seconds")
