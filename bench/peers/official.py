"""Measure the official SDK, in its own environment, when told to.

    python -m peers.official sync|async CONFIG

CONFIG is JSON: what the SDK's own configuration takes. Orders come a line each: see `alternating`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

from alternating import Figures, Watch, orders, tell, trip_figures, trips
from openai_codex import AsyncCodex, Codex
from openai_codex.async_client import AsyncCodexClient
from openai_codex.client import CodexClient, CodexConfig
from pydantic import BaseModel

TURN = "01a1b2c3-0000-7000-8000-00000000000b"
THREADS = 50


class Anything(BaseModel):
    """An answer that nobody looks at."""


def connected(config: CodexConfig) -> Figures:
    """How long it takes until the server is ready."""
    began = time.perf_counter()
    client = CodexClient(config)
    client.start()
    client.initialize()
    took = time.perf_counter() - began
    client.close()
    return {"milliseconds": took * 1e3}


class Sync:
    """One connection of the synchronous client."""

    def __init__(self, client: CodexClient) -> None:
        self._client = client

    def trips(self, method: str, count: int) -> Figures:
        taken = []
        for _ in range(count):
            began = time.perf_counter()
            self._client.request(method, {}, response_model=Anything)
            taken.append(time.perf_counter() - began)
        return trip_figures(taken)

    def crowd(self, method: str, count: int) -> Figures:
        watch = Watch()
        with ThreadPoolExecutor(THREADS) as threads:
            for _ in threads.map(
                lambda _: self._client.request(method, {}, response_model=Anything), range(count)
            ):
                pass
        return watch.figures(count)

    def flood(self, count: int) -> Figures:
        self._client.register_turn_notifications(TURN)
        watch = Watch()
        self._client.request("flood", {"count": count}, response_model=Anything)
        for _ in range(count):
            self._client.next_turn_notification(TURN)
        return watch.figures(count)


class Async:
    """One connection of the asynchronous client."""

    def __init__(self, client: AsyncCodexClient) -> None:
        self._client = client

    async def trips(self, method: str, count: int) -> Figures:
        return await trips(lambda: self._client.request(method, {}, response_model=Anything), count)

    async def crowd(self, method: str, count: int) -> Figures:
        watch = Watch()
        left = iter(range(count))

        async def ask() -> None:
            for _ in left:
                await self._client.request(method, {}, response_model=Anything)

        await asyncio.gather(*(ask() for _ in range(THREADS)))
        return watch.figures(count)

    async def flood(self, count: int) -> Figures:
        self._client.register_turn_notifications(TURN)
        watch = Watch()
        await self._client.request("flood", {"count": count}, response_model=Anything)
        for _ in range(count):
            await self._client.next_turn_notification(TURN)
        return watch.figures(count)


def turn(config: CodexConfig, count: int) -> Figures:
    """Read a turn of so many deltas."""
    with Codex(config) as codex:
        thread = codex.thread_start()
        watch = Watch()
        for _ in thread.turn(str(count)).stream():
            pass
        return watch.figures(count)


async def async_turn(config: CodexConfig, count: int) -> Figures:
    """Read a turn of so many deltas."""
    async with AsyncCodex(config) as codex:
        thread = await codex.thread_start()
        watch = Watch()
        async for _ in (await thread.turn(str(count))).stream():
            pass
        return watch.figures(count)


def serve(config: CodexConfig) -> None:
    with CodexClient(config) as client:
        client.initialize()
        acts: dict[str, Callable[..., Figures]] = {
            "trips": Sync(client).trips,
            "crowd": Sync(client).crowd,
            "flood": Sync(client).flood,
            "turn": lambda count: turn(config, count),
            "connect": lambda: connected(config),
        }
        for order in orders():
            tell(acts[order.pop("do")](**order))


async def serve_async(config: CodexConfig) -> None:
    async with AsyncCodexClient(config) as client:
        await client.initialize()
        acts: dict[str, Callable[..., Awaitable[Figures]]] = {
            "trips": Async(client).trips,
            "crowd": Async(client).crowd,
            "flood": Async(client).flood,
            "turn": lambda count: async_turn(config, count),
        }
        for order in orders():
            tell(await acts[order.pop("do")](**order))


def main() -> None:
    mode, configured = sys.argv[1], json.loads(sys.argv[2])
    config = CodexConfig(**configured)
    serve(config) if mode == "sync" else asyncio.run(serve_async(config))


if __name__ == "__main__":
    main()
