"""The process plane against the exec-server of Codex: one client, one core for everything.

    python bench/exec.py [--json]

Both servers run all the time and are measured in turn, figure by figure, by the same client. All
share one core, so what a server costs is what the others lack. Where there are rounds, the best
counts: it is the one that was disturbed least. The keeper is counted as a part of our server.

A virtual machine gives free memory back to its host, and the first touch of a page that was given
back takes longer than everything that is done with it here. Whoever is first would pay for that,
so memory is touched and freed before output is measured, for both.

Output and tickers are measured by a client that hardly does anything (`Ear`, in bench/ear.py): it
looks at each message just enough to count what is in it. Starts, outages and one row of output
are measured by our own client, which puts events in order, decodes them, and survives.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, time

import anyio
from alternating import have_memory
from ear import listening

sys.path.insert(0, str(Path(__file__).parent.parent))

from holdfast.exec import Client, Process, RecoveryPolicy
from holdfast.exec.failures import ReplayGap
from holdfast.exec.model import Command, Output
from holdfast.rpc import Transport
from holdfast.rpc.transports.websocket import upgrade
from holdfast.rpc.transports.websocket_protocol import TcpAddress, read_address
from holdfast.rpc.transports.websocket_stream_loop import WebSocketLimits
from holdfast.rpc.transports.websocket_wire_loop import connect_tcp
from tests.parts.codex_binary import install

SRC = Path(__file__).resolve().parent.parent / "src"
ENV = {"PATH": "/usr/bin:/bin"}
POLICY = RecoveryPolicy(window=20.0, wait_first=0.005, wait_longest=0.02, settled=0.001)
STARTS, WAVE, AT_ONCE = 60, 192, 32
BULK, STREAMS, ROUNDS = 1_000_000_000, 8, 3
KEPT = 72 * 2**20  # of each process, by the one that keeps more
TICKERS, TICK, TICKS, LISTENS = (200, 500), 1.0, 3, 5  # a host that stalls spoils a few rounds
START_LONGEST = 0.03
MISSED, OUTAGES, OUTAGE = (1_000_000, 10_000_000), 3, 0.4
# A shell that waits without forking: the tickers must cost less than what they measure. It speaks
# at times that are given, so that one that was late once is not late with all others ever after,
# and it stays until all have spoken: what an end costs is measured elsewhere.
TICKER = (
    "exec 3<><(:); "
    "pause() { ((left = $1 - ${EPOCHREALTIME/[.,]/})); ((left > 0)) || return; "
    'printf -v left "%d.%06d" $((left / 1000000)) $((left % 1000000)); read -t $left -u 3; }; '
    f"for ((n = 0; n < {TICKS}; n++)); do "
    f"pause $(($1 + n * {TICK * 1e6:.0f})); echo $EPOCHREALTIME; done; "
    f"pause $(($2 + {TICKS} * {TICK * 1e6:.0f}))"
)


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: where it listens, and the processes that it consists of."""

    url: str
    pids: tuple[int, ...]

    def cpu_seconds(self) -> float:
        """What it alone has used; the processes that it runs are not counted."""
        used = 0
        for pid in self.pids:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            used += int(fields[11]) + int(fields[12])
        return used / os.sysconf("SC_CLK_TCK")

    def rss_mb(self) -> float:
        """What it has in memory now."""
        pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self.pids)
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@dataclass
class Figures:
    """What was measured of one server."""

    numbers: dict[str, float] = field(default_factory=dict[str, float])
    gaps: set[str] = field(default_factory=set[str])
    outages: dict[str, list[float]] = field(default_factory=dict[str, list[float]])


@dataclass
class Cable:
    """Dials a server, and can be pulled and plugged in again."""

    url: str
    plugged: anyio.Event = field(default_factory=anyio.Event)
    end: socket.socket | None = None

    async def dial(self) -> Transport:
        """Connect, once there is a cable."""
        await self.plugged.wait()
        address = read_address(self.url)
        assert isinstance(address, TcpAddress)
        self.end = await connect_tcp(address)
        return await upgrade(self.end, address, token=None, limits=WebSocketLimits())

    def pull(self) -> None:
        """End the connection for both sides."""
        assert self.end is not None
        self.plugged = anyio.Event()
        self.end.shutdown(socket.SHUT_RDWR)


@contextmanager
def running(argv: list[str], home: Path) -> Generator[Server]:
    """Run a server that says its address in its first line."""
    home.mkdir()
    own = {"HOME": str(home), "CODEX_HOME": str(home), "TMPDIR": str(home), "PYTHONPATH": str(SRC)}
    quiet = subprocess.DEVNULL
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=quiet, env={**ENV, **own}) as server:
        assert server.stdout is not None
        try:
            url = server.stdout.readline().decode().strip()
            yield Server(url, (server.pid, *_keepers(home)))
        finally:
            server.terminate()


def _keepers(home: Path) -> Iterator[int]:
    """The processes beside a server that hold its processes for it."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(FileNotFoundError, ProcessLookupError):  # it is gone already
                words = (entry / "cmdline").read_bytes()
                if b"holdfast.exec.keeper" in words and bytes(home) in words:
                    yield int(entry.name)


@asynccontextmanager
async def connected(server: Server) -> AsyncGenerator[tuple[Client, Cable]]:
    """Our client, with one of the servers."""
    cable = Cable(server.url)
    cable.plugged.set()
    async with Client(cable.dial, policy=POLICY) as client:
        yield client, cable


def command(*argv: str) -> Command:
    """A command with nothing around it."""
    return Command(argv, cwd="/", env=ENV)


async def taken(process: Process, bytes_max: int | None = None) -> int:
    """Read a process to its close, or to so many bytes; return how many came."""
    size = 0
    while bytes_max is None or size < bytes_max:
        events = await process.receive()
        if not events:
            break
        size += sum(len(event.data) for event in events if isinstance(event, Output))
    return size


async def together(count: int, work: Callable[[], Awaitable[object]]) -> float:
    """Seconds that so many of the same take, side by side."""

    async def one() -> None:
        await work()

    begin = perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(one)
    return perf_counter() - begin


async def measure_starts(server: Server, figures: Figures) -> None:
    """How long a process takes that does nothing, alone and among many."""
    async with connected(server) as (client, _):

        async def run() -> float:
            begin = perf_counter()
            await (await client.start(command("/bin/true"))).wait()
            return perf_counter() - begin

        async def some() -> None:
            for _ in range(WAVE // AT_ONCE):
                await run()

        figures.numbers["true"] = median([await run() for _ in range(STARTS)])
        figures.numbers["rate"] = WAVE / await together(AT_ONCE, some)


async def measure_output(server: Server, figures: Figures, name: str, streams: int) -> None:
    """How much output arrives in a second, and what a gigabyte costs the server."""
    each = BULK // streams
    have_memory(streams * KEPT)
    async with listening(server.url) as ear:
        before, begin = server.cpu_seconds(), perf_counter()
        for number in range(streams):
            ear.start(f"{name}-{number}", ("/usr/bin/head", "-c", str(each), "/dev/zero"), ENV)
        await ear.wait_closed(streams)
        speed = BULK / 1e6 / (perf_counter() - begin)
        cost = (server.cpu_seconds() - before) / (BULK / 1e9)
        assert ear.bytes == each * streams
    best = figures.numbers
    best[f"speed {name}"] = max(speed, best.get(f"speed {name}", 0.0))
    best[f"cpu {name}"] = min(cost, best.get(f"cpu {name}", cost))


async def measure_client(server: Server, figures: Figures) -> None:
    """How much output arrives in a second at our own client."""
    async with connected(server) as (client, _):
        begin = perf_counter()
        head = command("/usr/bin/head", "-c", str(BULK), "/dev/zero")
        assert await taken(await client.start(head)) == BULK
        figures.numbers["speed client"] = BULK / 1e6 / (perf_counter() - begin)


async def measure_tickers(server: Server, figures: Figures, count: int) -> None:
    """How late the lines of many processes are that each say something now and then."""
    async with listening(server.url) as ear:
        # All are there before the first one speaks, and they speak one after the other.
        first = time() + 1.0 + count * START_LONGEST
        for number in range(count):
            at = [f"{1e6 * (first + part * TICK):.0f}" for part in (number / count, 1.0)]
            ear.start(f"{count}-{number}", ("/bin/bash", "-c", TICKER, "ticker", *at), ENV)
            if number % STREAMS == 0:
                await ear.wait_answer()
        await ear.wait_closed(count)
        # On a busy machine one message may bring more than one line.
        late = [arrived - float(said) for arrived, lines in ear.arrivals for said in lines.split()]
    assert len(late) == count * TICKS
    worst = quantiles(late, n=100)[98]
    figures.numbers[f"late {count}"] = min(worst, figures.numbers.get(f"late {count}", worst))


async def measure_outages(server: Server, figures: Figures, missed: int) -> None:
    """How long it takes until all is there that was said while there was no connection."""
    name = f"outage {missed}"
    seconds = figures.outages.setdefault(name, [])
    for _ in range(OUTAGES):
        async with connected(server) as (client, cable):
            script = f"sleep 0.1; head -c {missed} /dev/zero; exec sleep 20"
            process = await client.start(command("/bin/sh", "-c", script))
            cable.pull()
            await anyio.sleep(OUTAGE)
            begin = perf_counter()
            cable.plugged.set()
            try:
                assert await taken(process, missed) == missed
                seconds.append(perf_counter() - begin)
                await process.terminate()
            except ReplayGap:
                figures.gaps.add(name)
                return
    figures.numbers[name] = median(seconds)


async def measure(*servers: Server) -> list[Figures]:
    """All figures of the servers, one figure after the other."""
    both = [(server, Figures()) for server in servers]

    async def in_turn(work: Callable[[Server, Figures], Awaitable[None]], rounds: int = 1) -> None:
        for _ in range(rounds):
            for server, figures in both:
                await work(server, figures)

    await anyio.sleep(4)  # a server that nobody has come to rests after two seconds
    for server, figures in both:
        figures.numbers["rss"] = server.rss_mb()
    await in_turn(measure_starts)
    for name, streams in (("one", 1), ("eight", STREAMS)):
        await in_turn(partial(measure_output, name=name, streams=streams), ROUNDS)
    await in_turn(measure_client)
    for missed in MISSED:
        await in_turn(partial(measure_outages, missed=missed), ROUNDS)
    for count in TICKERS:
        await in_turn(partial(measure_tickers, count=count), LISTENS)
    for server, figures in both:
        figures.numbers["rss after"] = server.rss_mb()
    return [figures for _, figures in both]


def rows(ours: Figures, theirs: Figures) -> list[dict[str, str]]:
    """The table: each figure of both, and how they compare."""

    def row(what: str, name: str, form: str, target: str, scale: float = 1.0) -> dict[str, str]:
        def shown(figures: Figures) -> str:
            return "gap" if name in figures.gaps else form.format(figures.numbers[name] * scale)

        is_comparable = name in ours.numbers and name in theirs.numbers
        ratio = ours.numbers[name] / theirs.numbers[name] if is_comparable else None
        return {
            "what": what,
            "ours": shown(ours),
            "codex": shown(theirs),
            "ours / codex": "" if ratio is None else f"{ratio:.2f}",
            "target": target,
        }

    return [
        row("/bin/true, start to exit, p50", "true", "{:.2f} ms", "<= 0.10", 1e3),
        row(f"processes a second, {AT_ONCE} in flight", "rate", "{:.0f}/s", ">= 4"),
        row("output of one process", "speed one", "{:.0f} MB/s", ">= 2.5"),
        row(f"output of {STREAMS} processes", "speed eight", "{:.0f} MB/s", ">= 2.5"),
        row("output of one process, our client", "speed client", "{:.0f} MB/s", ""),
        row("server CPU, one process", "cpu one", "{:.2f} s/GB", "<= 0.30"),
        row(f"server CPU, {STREAMS} processes", "cpu eight", "{:.2f} s/GB", "<= 0.30"),
        *(
            row(f"{count} tickers, delivery p99", f"late {count}", "{:.2f} ms", "<= 1 ms", 1e3)
            for count in TICKERS
        ),
        row("reconnect and catch up 1 MB", f"outage {MISSED[0]}", "{:.1f} ms", "<= 1.0", 1e3),
        row("reconnect and catch up 10 MB", f"outage {MISSED[1]}", "{:.1f} ms", "<= 100 ms", 1e3),
        row("memory, idle", "rss", "{:.0f} MB", "<= 0.5"),
        row("memory, after all this", "rss after", "{:.0f} MB", ""),
    ]


def main() -> None:
    """Measure both and print the table."""
    parser = argparse.ArgumentParser(description="Measure the process plane.")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    codex = str(install())
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    root = Path(tempfile.mkdtemp())
    listen = ["--listen", "ws://127.0.0.1:0"]
    server = [sys.executable, "-m", "holdfast.exec.server", *listen, "--no-token"]
    own = [*server, "--end-processes", "--state", str(root / "ours" / "state")]
    other = [codex, "exec-server", *listen]
    try:
        with running(own, root / "ours") as ours, running(other, root / "codex") as theirs:
            uvloop = {"use_uvloop": True}
            figures = anyio.run(measure, ours, theirs, backend_options=uvloop)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    table = rows(*figures)
    if args.json:
        print(json.dumps({"title": "Processes (all on one core)", "rows": table}))
        return
    for row in table:
        print("{what:36} {ours:>10} {codex:>10}  {ours / codex:>6}  {target}".format_map(row))


if __name__ == "__main__":
    main()
