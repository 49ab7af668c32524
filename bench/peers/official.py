"""Measure the official SDK, in its own environment: events per CPU second and round trips.

python bench/peers/official.py sync|async COUNT ROUNDS
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from pathlib import Path

from openai_codex.async_client import AsyncCodexClient
from openai_codex.client import CodexClient, CodexConfig
from pydantic import BaseModel

FAR_END = Path(__file__).parent.parent / "far_end.py"
TURN = "01a1b2c3-0000-7000-8000-00000000000b"


class Anything(BaseModel):
    """An answer that nobody looks at."""


def config() -> CodexConfig:
    return CodexConfig(launch_args_override=(sys.executable, str(FAR_END)))


def used() -> float:
    return time.process_time()


def report(events: float, cpu: float, wall: float, trips: list[float]) -> None:
    trips.sort()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    figures = {"per_cpu_second": events / cpu, "wall_seconds": wall, "rss_mib": peak / 1024}
    if trips:
        figures["round_trip_us"] = trips[len(trips) // 2] * 1e6
    print(json.dumps(figures))


def run_sync(count: int, rounds: int) -> None:
    with CodexClient(config()) as client:
        client.initialize()
        trips = []
        for _ in range(rounds):
            began = time.perf_counter()
            client.request("echo", {"n": 1}, response_model=Anything)
            trips.append(time.perf_counter() - began)
        client.register_turn_notifications(TURN)
        cpu, wall = used(), time.perf_counter()
        client.request("flood", {"count": count}, response_model=Anything)
        for _ in range(count):
            client.next_turn_notification(TURN)
        report(count, used() - cpu, time.perf_counter() - wall, trips)


async def run_async(count: int, rounds: int) -> None:
    async with AsyncCodexClient(config()) as client:
        await client.initialize()
        trips = []
        for _ in range(rounds):
            began = time.perf_counter()
            await client.request("echo", {"n": 1}, response_model=Anything)
            trips.append(time.perf_counter() - began)
        client.register_turn_notifications(TURN)
        cpu, wall = used(), time.perf_counter()
        await client.request("flood", {"count": count}, response_model=Anything)
        for _ in range(count):
            await client.next_turn_notification(TURN)
        report(count, used() - cpu, time.perf_counter() - wall, trips)


if __name__ == "__main__":
    mode, count, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    run_sync(count, rounds) if mode == "sync" else asyncio.run(run_async(count, rounds))
