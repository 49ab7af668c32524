"""JSON lines over a child process: ours, the official SDK's and bare asyncio's, in one run.

    python bench/rpc.py [--json]

The child floods 200,000 notifications of 227 bytes, and answers requests one by one. What counts
for a flood is our own processor time for each event: time on the wall depends on the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import anyio
import msgspec
import official
from alternating import (
    Figures,
    Order,
    Watch,
    afresh,
    in_turn,
    on_one_core,
    orders,
    tell,
    trips,
    working,
)

from holdfast.rpc import ChildCommand, Connection, ConnectionConfig, spawn
from holdfast.rpc.model import Dialect

COUNT, COUNT_ASYNC, TRIPS = 200_000, 20_000, 200
ROUNDS, ROUNDS_AFRESH = 30, 5
FAR_END = [sys.executable, str(Path(__file__).parent / "far_end.py")]


class Delta(msgspec.Struct, gc=False, rename="camel"):
    """What each notification says; the official SDK reads it too, so we do."""

    thread_id: str
    turn_id: str
    item_id: str
    delta: str


async def ours() -> None:
    """Measure a whole connection."""
    command = ChildCommand(argv=tuple(FAR_END), cwd=os.getcwd(), env=dict(os.environ))
    async with Connection(await spawn(command), ConnectionConfig(dialect=Dialect())) as connection:
        for order in orders():
            if order["do"] == "flood":
                tell(await flood(connection, order["count"]))
            else:
                ask = partial(connection.request, order["method"], {}, timeout=10)
                tell(await trips(ask, order["count"]))


async def flood(connection: Connection, count: int) -> Figures:
    read = msgspec.json.Decoder(Delta).decode
    with connection.subscribe(bytes_max=2**30, items_max=10**7) as news:
        watch, seen = Watch(), 0
        await connection.request("flood", {"count": count}, timeout=10)
        while seen < count:
            for note in await news.receive():
                if note.method == "item/agentMessage/delta":
                    read(note.params)
                    seen += 1
        return watch.figures(count)


async def bare() -> None:
    """Measure nothing but asyncio's own pipes and a JSON decoder."""
    child = await asyncio.create_subprocess_exec(
        *FAR_END, stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=2**20
    )
    assert child.stdin is not None
    assert child.stdout is not None
    for order in orders():
        tell(await _bare(child.stdin, child.stdout, order))
    child.stdin.close()
    await child.wait()


async def _bare(stdin: asyncio.StreamWriter, stdout: asyncio.StreamReader, order: Order) -> Figures:
    count = order["count"]
    if order["do"] == "flood":
        stdin.write(b'{"id":0,"method":"flood","params":{"count":%d}}\n' % count)
        watch, seen = Watch(), -1
        while seen < count:
            message = msgspec.json.decode(await stdout.readline())
            seen += "method" in message or "result" in message
        await stdout.readline()  # which says that this was all
        return watch.figures(count)
    number = 0

    async def ask() -> None:
        nonlocal number
        number += 1
        request = {"id": number, "method": order["method"], "params": {}}
        stdin.write(msgspec.json.encode(request) + b"\n")
        await stdin.drain()
        assert msgspec.json.decode(await stdout.readline())["id"] == number

    return await trips(ask, count)


def rows() -> list[dict[str, str]]:
    commands = {
        "holdfast.rpc": [sys.executable, __file__, "--only", "ours"],
        "official SDK, sync": official.worker("sync", launch_args_override=FAR_END),
        "official SDK, async": official.worker("async", launch_args_override=FAR_END),
        "bare asyncio streams": [sys.executable, __file__, "--only", "bare"],
    }
    slow = "official SDK, async"
    quick = {name: command for name, command in commands.items() if name != slow}
    floods = afresh(quick, {"do": "flood", "count": COUNT}, ROUNDS_AFRESH)
    floods |= afresh({slow: commands[slow]}, {"do": "flood", "count": COUNT_ASYNC}, ROUNDS_AFRESH)
    with working(commands) as workers:
        found = in_turn(workers, {"do": "trips", "method": "echo", "count": TRIPS}, ROUNDS)
    targets = dict.fromkeys(commands, "")
    targets |= {"official SDK, sync": "events >= 3x", slow: "events >= 20x"}
    targets["bare asyncio streams"] = "round trip <= 1.3x"
    rate, trip = (floods["holdfast.rpc"]["per_cpu_second"], found["holdfast.rpc"]["p50"])
    return [
        {
            "what": name,
            "events per CPU second": f"{floods[name]['per_cpu_second']:,.0f}",
            "ours": f"{rate / floods[name]['per_cpu_second']:.1f}x",
            "round trip": f"{found[name]['p50']:.0f} µs",
            "ours takes": f"{trip / found[name]['p50']:.2f}x",
            "peak memory": f"{floods[name]['peak_mib']:.0f} MiB",
            "target": targets[name],
        }
        for name in commands
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure JSON lines over a child process.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", choices=["ours", "bare"])
    args = parser.parse_args()
    if args.only:
        anyio.run(ours if args.only == "ours" else bare)
        return
    on_one_core()
    table = rows()
    title = "JSON-RPC over a child process"
    print(json.dumps({"title": title, "rows": table}) if args.json else _table(table))


def _table(table: list[dict[str, str]]) -> str:
    return "\n".join("  ".join(f"{name}: {cell}" for name, cell in row.items()) for row in table)


if __name__ == "__main__":
    main()
