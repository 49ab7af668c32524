"""WebSockets on loopback: ours, bare picows and the `websockets` library, in one run.

    python bench/websocket.py [--json]

A server in one process sends and a client in another receives. What counts is the CPU time of
both: for 1 GB in messages of 64 KiB, and for messages of 227 bytes. Everyone sends one message
at a time; ours is also measured with 32 at a time, as its port offers. Compression is off.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

SIZES = {"large": 64 * 2**10, "small": 227}
COUNTS = {"large": 10**9 // (64 * 2**10), "small": 200_000}
REPEATS = 3

PLACE = Path(__file__).parent.parent / ".cache" / "bench-websockets"
LIBRARY = "websockets==17.4"

# Each end imports only what it measures: the library lives in an environment of its own.
# ruff: noqa: ARG002  # a listener has the parameters that picows gives it


class Clock:
    """The CPU time since both ends were connected: what comes before is not measured."""

    began = 0.0

    @classmethod
    def start(cls) -> None:
        cls.began = time.process_time()

    @classmethod
    def passed(cls) -> float:
        return time.process_time() - cls.began


async def ours_sends(size: int, count: int, batch: int) -> None:
    from holdfast.rpc.transports.websocket import listen_websocket

    server = await listen_websocket("ws://127.0.0.1:0", token=None)
    print(server.url, flush=True)
    transport = await server.accept()
    messages = [b"x" * size] * batch
    Clock.start()
    for _ in range(count // batch):
        await transport.send(messages)
    await transport.receive()


async def ours_receives(url: str, count: int) -> None:
    from holdfast.rpc.transports.websocket import connect_websocket

    transport = await connect_websocket(url)
    Clock.start()
    seen = 0
    while seen < count:
        seen += len(await transport.receive())
    await transport.send([b"done"])


async def picows_sends(size: int, count: int, _batch: int) -> None:
    import picows

    done = asyncio.Event()
    message = b"x" * size

    class Sender(picows.WSListener):
        def on_ws_connected(self, transport: picows.WSTransport) -> None:
            Clock.start()
            self.transport = transport
            self.left, self.flows = count, True
            self.send()

        def send(self) -> None:
            """As much as the other side takes, but not so much that nobody else has a turn."""
            for _ in range(64):
                if not self.left or not self.flows:
                    return
                self.transport.send(picows.WSMsgType.TEXT, message)
                self.left -= 1
            asyncio.get_running_loop().call_soon(self.send)

        def pause_writing(self) -> None:
            self.flows = False

        def resume_writing(self) -> None:
            self.flows = True
            self.send()

        def on_ws_frame(self, transport: picows.WSTransport, frame: picows.WSFrame) -> None:
            done.set()

    server = await picows.ws_create_server(lambda _: Sender(), "127.0.0.1", 0)
    print(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await done.wait()


async def picows_receives(url: str, count: int) -> None:
    import picows

    done = asyncio.Event()

    class Receiver(picows.WSListener):
        seen = 0

        def on_ws_connected(self, transport: picows.WSTransport) -> None:
            Clock.start()

        def on_ws_frame(self, transport: picows.WSTransport, frame: picows.WSFrame) -> None:
            frame.get_payload_as_bytes()
            self.seen += 1
            if self.seen == count:
                transport.send(picows.WSMsgType.TEXT, b"done")
                done.set()

    await picows.ws_connect(Receiver, url)
    await done.wait()


async def library_sends(size: int, count: int, _batch: int) -> None:
    from websockets.asyncio.server import ServerConnection, serve

    done = asyncio.Event()
    message = b"x" * size

    async def send(connection: ServerConnection) -> None:
        Clock.start()
        for _ in range(count):
            await connection.send(message, text=True)
        await connection.recv()
        done.set()

    async with serve(send, "127.0.0.1", 0, compression=None) as server:
        print(f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}", flush=True)
        await done.wait()


async def library_receives(url: str, count: int) -> None:
    from websockets.asyncio.client import connect

    async with connect(url, compression=None, max_size=2**24) as connection:
        Clock.start()
        for _ in range(count):
            await connection.recv(decode=False)
        await connection.send("done")


ENDS = {
    "ours": (ours_sends, ours_receives),
    "picows": (picows_sends, picows_receives),
    "websockets": (library_sends, library_receives),
}


def end(kind: str, which: str, url: str, batch: int) -> None:
    """Be one end of a measurement, and say how much CPU time that took."""
    sends, receives = ENDS[kind]
    if url:
        asyncio.run(receives(url, COUNTS[which] // batch * batch))
    else:
        asyncio.run(sends(SIZES[which], COUNTS[which], batch))
    print(Clock.passed(), flush=True)


def measured(kind: str, which: str, batch: int = 1) -> float:
    """CPU seconds of both ends together, in one run."""
    interpreter = str(library() if kind == "websockets" else sys.executable)
    argv = [interpreter, __file__, "--kind", kind, "--which", which, "--batch", str(batch)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        client = subprocess.run(
            [*argv, "--url", url], stdout=subprocess.PIPE, text=True, check=True
        )
        return float(client.stdout) + float(server.stdout.readline())


def library() -> Path:
    """An interpreter with the library, set up once."""
    interpreter, stamp = PLACE / "bin" / "python", PLACE / LIBRARY
    if not stamp.exists():
        uv = [sys.executable, "-m", "uv"]
        subprocess.run([*uv, "venv", "-q", "--clear", str(PLACE)], check=True)
        subprocess.run(
            [*uv, "pip", "install", "-q", LIBRARY, "--python", str(interpreter)], check=True
        )
        stamp.touch()
    return interpreter


def rows() -> list[dict[str, str]]:
    """The table: the median of runs in turn, so that a busy machine disturbs all alike."""
    names = {
        "holdfast.rpc": ("ours", 1),
        "holdfast.rpc, 32 at a time": ("ours", 32),
        "bare picows": ("picows", 1),
        "websockets": ("websockets", 1),
    }
    turns = [
        {
            (name, which): measured(kind, which, batch)
            for name, (kind, batch) in names.items()
            for which in SIZES
        }
        for _ in range(REPEATS)
    ]
    middle = {each: median(turn[each] for turn in turns) for each in turns[0]}

    def row(what: str) -> dict[str, str]:
        large, small = middle[what, "large"], middle[what, "small"]
        return {
            "what": what,
            "CPU seconds per GB": f"{large:.2f}",
            "of bare picows": f"{large / middle['bare picows', 'large']:.2f}x",
            "small messages per CPU second": f"{COUNTS['small'] / small:,.0f}",
            "of bare picows' time": f"{small / middle['bare picows', 'small']:.2f}x",
            "target": "<= 1.5x" if what == "holdfast.rpc" else "",
        }

    return [row(what) for what in names]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure WebSockets on loopback.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--kind", choices=ENDS)
    parser.add_argument("--which", choices=SIZES)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--url", default="")
    args = parser.parse_args()
    if args.kind:
        end(args.kind, args.which, args.url, args.batch)
        return
    table = rows()
    title = "WebSockets on loopback"
    print(json.dumps({"title": title, "rows": table}) if args.json else _table(table))


def _table(table: list[dict[str, str]]) -> str:
    return "\n".join("  ".join(f"{name}: {cell}" for name, cell in row.items()) for row in table)


if __name__ == "__main__":
    main()
