"""For tests: models over HTTP with a provider on loopback, or one in memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from holdfast.agent.providers.http_provider import Deadlines, HttpModels
from holdfast.agent.providers.http_request import How, Lost, Request, Web
from holdfast.agent.providers.http_response import Head
from holdfast.agent.providers.keys import EnvironmentKeys, Keys
from holdfast.agent.providers.registry import Format, Priced, PriceList, Prices, Provider, Rates
from holdfast.failures import RetryPolicy
from holdfast.world import SystemClock, SystemRandomSource
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
    web: Web | None = None,
    keys: Keys = KEYS,
) -> HttpModels:
    """Models of one provider, `there`."""
    return HttpModels(
        {"there": Provider("there", form, url, "THERE_API_KEY")},
        keys=keys,
        prices=PRICES,
        clock=SystemClock(),
        chance=SystemRandomSource(),
        policy=policy,
        deadlines=deadlines,
        web=web,
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


class Delayed:
    """A provider in memory: of each request the seconds before its headers and its chunks."""

    def __init__(self, *scripts: tuple[float, Sequence[tuple[float, bytes]]]) -> None:
        self._scripts = iter(scripts)
        self.closed = 0

    async def ask(self, request: Request, *, connect: float, until: float) -> _Chunks | Lost:
        wait, chunks = next(self._scripts)
        return _Chunks(self, iter(chunks)) if await _is_in_time(wait, until) else Lost(How.LATE)

    async def close(self) -> None:
        """Nothing is kept."""


class _Chunks:
    head = Head(200, {"content-type": "text/event-stream"})

    def __init__(self, web: Delayed, chunks: Iterator[tuple[float, bytes]]) -> None:
        self._web, self._chunks = web, chunks

    async def read(self, *, until: float) -> bytes | Lost:
        wait, chunk = next(self._chunks, (0.0, b""))
        return chunk if await _is_in_time(wait, until) else Lost(How.LATE)

    def close(self) -> None:
        self._web.closed += 1


async def _is_in_time(wait: float, until: float) -> bool:
    late = wait >= until - anyio.current_time()
    await (anyio.sleep_until(until) if late else anyio.sleep(wait))
    return not late
