"""The Codex SDK against the official one, in one run: a long turn, and requests to the real Codex.

    python bench/codex.py [--json]

The turn has 200,000 deltas of 227 bytes, from a server of ours: no model is that fast. What counts
there is our own processor time for each event. Requests go to the real app-server.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

import anyio
import official
from alternating import Figures, Watch, afresh, in_turn, on_one_core, orders, tell, trips, working

from holdfast.codex import AppServer

HERE = Path(__file__).parent
FAR_END = [sys.executable, str(HERE / "far_end.py")]
COUNT, COUNT_ASYNC, ROUNDS_AFRESH = 200_000, 20_000, 5
METHOD, TRIPS, CROWD, ROUNDS = "thread/loaded/list", 200, 1_000, 20
IN_FLIGHT = 100
OURS, SYNC, ASYNC = "holdfast", "official, sync", "official, async"
Rows = list[dict[str, str]]


async def turn(command: Sequence[str], count: int) -> Figures:
    """Read a turn of so many deltas."""
    async with AppServer.connect(command=command) as server:
        thread = await server.start_thread()
        watch = Watch()
        async for _ in thread.run(str(count)):
            pass
        return watch.figures(count)


async def connected(connect: Callable[[], object]) -> Figures:
    """How long it takes until the server is ready."""
    began = time.perf_counter()
    async with connect():  # type: ignore[attr-defined]  # a connection of ours
        took = time.perf_counter() - began
    return {"milliseconds": took * 1e3}


async def crowd(server: AppServer, method: str, count: int) -> Figures:
    """Ask so many times, a hundred at a time."""
    left, watch = iter(range(count)), Watch()

    async def ask() -> None:
        for _ in left:
            await server.request(method, {})

    async with anyio.create_task_group() as tasks:
        for _ in range(IN_FLIGHT):
            tasks.start_soon(ask)
    return watch.figures(count)


async def serve(command: Sequence[str], env: dict[str, str] | None) -> None:
    """Measure ours, when told to."""
    connect = partial(AppServer.connect, command=command, env=env)
    async with connect() as server:
        acts: dict[str, Callable[..., Awaitable[Figures]]] = {
            "trips": lambda method, count: trips(lambda: server.request(method, {}), count),
            "crowd": partial(crowd, server),
            "turn": partial(turn, command),
            "connect": partial(connected, connect),
        }
        for order in orders():
            tell(await acts[order.pop("do")](**order))


def ours(command: Sequence[str], env: dict[str, str] | None = None) -> list[str]:
    """The command of a worker that measures ours."""
    return [sys.executable, __file__, "--serve", json.dumps({"command": command, "env": env})]


def turns() -> Rows:
    """What a long turn costs."""
    quick = {OURS: ours(FAR_END), SYNC: official.worker("sync", launch_args_override=FAR_END)}
    slow = {ASYNC: official.worker("async", launch_args_override=FAR_END)}
    found = afresh(quick, {"do": "turn", "count": COUNT}, ROUNDS_AFRESH)
    found |= afresh(slow, {"do": "turn", "count": COUNT_ASYNC}, ROUNDS_AFRESH)
    more = ">= 3x its sync, >= 20x its async"
    return [
        row("a turn: events per CPU second", found, "per_cpu_second", more),
        row("a turn: peak memory, MiB", found, "peak_mib", "less than both"),
    ]


def requests(directory: Path) -> Rows:
    """What requests to the real Codex take."""
    sys.path.insert(0, str(HERE.parent))
    from tests.parts.codex_binary import codex_home, install

    binary = str(install())
    homes = [codex_home(directory / name, "http://127.0.0.1:9/v1") for name in "abc"]
    commands = {
        OURS: ours([binary, "app-server"], homes[0]),
        SYNC: official.worker("sync", codex_bin=binary, env=homes[1]),
        ASYNC: official.worker("async", codex_bin=binary, env=homes[2]),
    }
    with working(commands) as workers:
        single = in_turn(workers, {"do": "trips", "method": METHOD, "count": TRIPS}, ROUNDS)
        many = in_turn(workers, {"do": "crowd", "method": METHOD, "count": CROWD}, ROUNDS)
        both = {name: workers[name] for name in (OURS, SYNC)}
        ready = in_turn(both, {"do": "connect"}, ROUNDS)
    return [
        row("a request to the real Codex: median, µs", single, "p50", "<= its sync"),
        row("a request to the real Codex: 99th percentile, µs", single, "p99", ""),
        row("requests a second, many in flight", many, "per_second", ""),
        row("connecting to the real Codex, ms", ready, "milliseconds", ""),
    ]


def row(what: str, found: dict[str, Figures], figure: str, target: str) -> dict[str, str]:
    """One line of the table: the figure of each, and ours as a multiple of theirs."""
    cells = {name: f"{figures[figure]:,.0f}" for name, figures in found.items()}
    us = found[OURS][figure]
    against = {
        f"ours / {name}": f"{us / figures[figure]:.2f}x"
        for name, figures in found.items()
        if name != OURS
    }
    return {"what": what, **cells, **against, "target": target}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the Codex SDK against the official one.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", metavar="JSON", help="measure ours, when told to")
    args = parser.parse_args()
    if args.serve:
        anyio.run(partial(serve, **json.loads(args.serve)))
        return
    on_one_core()
    with tempfile.TemporaryDirectory(dir=HERE.parent / ".cache") as directory:
        table = turns() + requests(Path(directory))
    title = "Codex SDK, against the official one"
    print(json.dumps({"title": title, "rows": table}) if args.json else _table(table))


def _table(table: Rows) -> str:
    return "\n".join("  ".join(f"{name}: {cell}" for name, cell in row.items()) for row in table)


if __name__ == "__main__":
    main()
