"""For tests: models over HTTP with a provider on loopback, or one in memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx2

from holdfast.agent.core.prices import Priced, PriceList, Prices, Rates
from holdfast.agent.core.providers import Format, Provider
from holdfast.agent.exchange import Deadlines
from holdfast.agent.keys import EnvironmentKeys, Keys
from holdfast.agent.providing import HttpModels
from holdfast.failures import RetryPolicy
from holdfast.world import SystemChance, SystemClock
from tests.parts.provider_server import ProviderServer, Reply

KEY = "sk-there-0123456789abcdef"
KEYS = Keys([EnvironmentKeys({"THERE_API_KEY": KEY})], file=Path("keys.toml"))
WINDOW = 200_000
PRICES = Prices(
    PriceList("", {"there": (Priced((Rates(0, 5.0, 0.5, 25.0),), WINDOW, ("some-model",)),)})
)
AT_ONCE = RetryPolicy(waits=((0.0, 0.0),) * 3)
NEVER = RetryPolicy(waits=())


def models_at(
    url: str,
    form: Format,
    *,
    policy: RetryPolicy = AT_ONCE,
    deadlines: Deadlines | None = None,
    transport: httpx2.AsyncBaseTransport | None = None,
    keys: Keys = KEYS,
) -> HttpModels:
    """Models of one provider, `there`."""
    return HttpModels(
        {"there": Provider("there", form, url, "THERE_API_KEY")},
        keys=keys,
        prices=PRICES,
        clock=SystemClock(),
        chance=SystemChance(),
        policy=policy,
        deadlines=deadlines,
        transport=transport,
    )


@asynccontextmanager
async def served(
    form: Format,
    replies: Sequence[Reply],
    *,
    policy: RetryPolicy = AT_ONCE,
    deadlines: Deadlines | None = None,
) -> AsyncGenerator[tuple[HttpModels, ProviderServer]]:
    """Models of a provider that replies like this."""
    async with ProviderServer(replies) as server:
        async with models_at(server.url, form, policy=policy, deadlines=deadlines) as models:
            yield models, server


class Delayed(httpx2.AsyncBaseTransport):
    """A provider in memory: of each request the seconds before its headers and its chunks."""

    def __init__(self, *scripts: tuple[float, Sequence[tuple[float, bytes]]]) -> None:
        self._scripts = iter(scripts)
        self.closed = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        wait, chunks = next(self._scripts)
        await anyio.sleep(wait)
        stream = _Chunks(chunks, self._close)
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=stream)

    def _close(self) -> None:
        self.closed += 1


class _Chunks(httpx2.AsyncByteStream):
    def __init__(self, chunks: Sequence[tuple[float, bytes]], close: Callable[[], None]) -> None:
        self._chunks = chunks
        self._close = close

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for wait, chunk in self._chunks:
            await anyio.sleep(wait)
            yield chunk

    async def aclose(self) -> None:
        self._close()
