"""What it costs that a conversation is held by a process of its own.

    python bench/host.py [--json]

Commands and the tail of a journal are measured with a real socket and a real disk in one process,
its agent a puppet. Processor time is what the host itself used: its start is `holdfast host` for a
session that exists, up to its first answer, with compiled modules as any installation has them.
A crash is SIGKILL to the host in the middle of a turn, seen by a client that sits at the session as
`holdfast ask` does: it notices, has the next host started by the process plane, and goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import NamedTuple

import anyio
from alternating import on_one_core

from holdfast.app.sessions import Sessions
from holdfast.app.settings import parse
from holdfast.app.wiring.host import start_host
from holdfast.host.client import HostClient, RecordReceived, connect_host
from holdfast.host.journal import SCHEMA, SessionJournal
from holdfast.host.model import (
    AttemptStarted,
    CloseCommand,
    EventRecorded,
    PromptCommand,
    SessionOpened,
    TurnClosed,
)
from holdfast.host.ports import DraftRevision, PublishResult
from holdfast.host.server import HostConfig, run_host
from holdfast.host.session import SessionPhase
from holdfast.host.supervision import HostSupervisor, listener, supervise_host
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost, SocketRefused
from holdfast.runners.memory import MemoryRunner
from holdfast.runners.model import TextCompleted
from holdfast.workbench import Workbench, open_draft
from holdfast.world import Journal, SystemDisk
from holdfast.world.journal_format import encode_record

COMMANDS, EVENTS, STARTS, ROUNDS, CRASHES = 200, 100_000, 9, 3, 5
LONG_TURN = '[[turn]]\nstep = [{say = "Hello"}, {wait = 600}]\n'
EVENT = EventRecorded(1, TextCompleted("msg_1", "x" * 150))
OURS = (sys.executable, "-P", "-m", "holdfast.cli.main")
COLUMNS = {"what": 44, "measured": 12, "target": 0}


class NoDraft:
    """A workshop in which nothing is ever changed."""

    async def prepare(self) -> None:
        """Nothing is to be done."""

    async def revise(self, cause: str) -> DraftRevision | None:
        """Nothing has changed."""
        del cause

    async def publish(self, key: str) -> PublishResult:
        """There is nothing to publish."""
        del key
        return PublishResult(0, None)

    async def report(self, closed: TurnClosed, made: DraftRevision | None) -> str:
        """Nobody reads it."""
        del closed, made
        return ""


def order_in(root: Path) -> HostConfig:
    """A session in a directory."""
    return HostConfig(
        session="s1",
        directory=root,
        socket=root / "s",
        project="/p",
        draft="d1",
        runner="puppet",
    )


@asynccontextmanager
async def hosted(root: Path) -> AsyncGenerator[HostClient]:
    """A host in this process, and a call of it."""
    order = order_in(root)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_host, order, MemoryRunner([[TextCompleted("1", "Hello")]]), NoDraft())
        while not order.socket.exists():  # noqa: ASYNC110  # nobody tells
            await anyio.sleep(0.005)
        async with connect_host(order.socket) as call:
            yield call
            await call.command(CloseCommand(f"end {call.standing.attempt}"))


async def commanded(root: Path) -> tuple[float, float]:
    """Seconds from a command to its answer, and to the first event of its turn; medians."""
    answers, events = list[float](), list[float]()
    async with hosted(root) as call, anyio.create_task_group() as tasks:
        heard = anyio.Event()
        closed = anyio.Event()

        async def listen() -> None:
            nonlocal heard, closed
            async for news in call.watch():
                for each in news:
                    if isinstance(each, RecordReceived) and isinstance(each.record, EventRecorded):
                        heard.set()
                    if isinstance(each, RecordReceived) and isinstance(each.record, TurnClosed):
                        closed.set()

        tasks.start_soon(listen)
        for number in range(COMMANDS):
            heard, closed = anyio.Event(), anyio.Event()
            began = perf_counter()
            await call.command(PromptCommand(f"c{number}", "go"))
            answers.append(perf_counter() - began)
            await heard.wait()
            events.append(perf_counter() - began)
            await closed.wait()
            while (await call.state()).phase is not SessionPhase.IDLE:  # noqa: ASYNC110  # nobody tells
                await anyio.sleep(0.001)
        tasks.cancel_scope.cancel()
    return median(answers), median(events)


def filled(root: Path) -> None:
    """A journal of many events."""
    journal = Journal.open(SystemDisk(), root / "journal.jsonl", schema=SCHEMA, log="s1")
    journal.append([encode_record(SessionOpened("s1", "/p", "d1", "puppet", 0))])
    line = encode_record(EVENT)
    for _ in range(0, EVENTS, 1000):
        journal.append([line] * 1000)
    journal.close()


async def followed(root: Path) -> float:
    """Events that a host reads, from a cursor on, in a second of the processor."""
    book = SessionJournal.open(SystemDisk(), root / "journal.jsonl", name="s1", run=_never)
    count, began = 0, process_time()
    async for page in book.follow(1):
        count += len(page)
        if count >= EVENTS:
            break
    book.close()
    return count / (process_time() - began)


async def told(root: Path) -> float:
    """The same with both ends of a socket, encoding and decoding included."""
    async with hosted(root) as call:
        count, began = 0, process_time()
        async for news in call.watch(after=1):
            count += len(news)
            if count >= EVENTS:
                return count / (process_time() - began)
    raise AssertionError("it ends before its end")


def _never(work: Callable[[], int], tell: object) -> None:
    raise AssertionError((work, tell))


class Start(NamedTuple):
    """What a start takes: seconds of the processor and of the wall, and mebibytes."""

    processor: float
    wall: float
    memory: float


class Crash(NamedTuple):
    """Seconds from the death of a host to the next event, and to the word of its turn's end."""

    event: float
    told: float


async def heard(seat: HostSupervisor, sort: type[object]) -> None:
    """Wait for a record of this sort."""
    with anyio.fail_after(60):
        while not any(
            isinstance(each, RecordReceived) and isinstance(each.record, sort)
            for each in await seat.receive()
        ):
            pass


def used_by(pid: int) -> Start:
    """What a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    held = next(line for line in status if line.startswith("VmRSS"))
    return Start(ticks / os.sysconf("SC_CLK_TCK"), 0.0, int(held.split()[1]) / 1024)


class Program:
    """`holdfast host` as it is started by others."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._env = os.environ | {"HOLDFAST_HOME": str(home)}
        self._env.pop("PYTHONDONTWRITEBYTECODE", None)
        self._env["PYTHONPYCACHEPREFIX"] = str(home / "compiled")
        project = home / "project"
        project.mkdir()
        (project / "readme.txt").write_text("A project.\n")
        (home / "long.toml").write_text(LONG_TURN)
        self._settings = settings = parse(self._env, person=home)
        draft = open_draft(Workbench.at(project, settings.state)).id
        sessions = Sessions(settings)
        options = {"scenario": str(home / "long.toml")}
        self._session = sessions.make(str(project), draft, "rehearsal", title="", options=options)
        self._argv = [*OURS, "host", self._session.id]
        self._socket = sessions.socket(self._session)

    async def started(self) -> Start:
        """What a start up to the first answer takes."""
        began = perf_counter()
        process = subprocess.Popen(self._argv, env=self._env)  # noqa: ASYNC220  # at once
        try:
            with anyio.fail_after(60):
                while not await self._answers():  # noqa: ASYNC110  # nobody tells
                    await anyio.sleep(0.005)
            return used_by(process.pid)._replace(wall=perf_counter() - began)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()

    async def crashed(self) -> Crash:
        """What becomes of a turn whose host is killed, as somebody who sits there sees it."""
        os.environ |= self._env  # as whoever starts it has it
        start = partial(start_host, self._session, self._settings)
        after = Sessions(self._settings).last(self._session)
        async with supervise_host(self._socket, start, after=after) as seat:
            await seat.command(PromptCommand(secrets.token_hex(8), "go"))
            await heard(seat, EventRecorded)
            began = perf_counter()
            os.kill(listener(self._socket), signal.SIGKILL)
            await heard(seat, AttemptStarted)
            event = perf_counter() - began
            await heard(seat, TurnClosed)
            told = perf_counter() - began
            await seat.command(CloseCommand(secrets.token_hex(8)))
        while self._socket.exists():  # noqa: ASYNC110  # nobody tells
            await anyio.sleep(0.01)
        return Crash(event, told)

    async def _answers(self) -> bool:
        with suppress(SocketRefused, ConnectionLost, ConnectionClosed):
            async with connect_host(self._socket) as call:
                await call.state()
                return True
        return False

    def stop(self) -> None:
        """Leave nothing behind."""
        words = ["stop", "--all", "--state", str(self._home / "state"), "--yes"]
        subprocess.run([*OURS, *words], env=self._env, capture_output=True, check=False)


def rows(root: Path) -> list[dict[str, str]]:
    """Measure everything."""
    for name in ("a", "b", "h"):
        (root / name).mkdir(mode=0o700)
    answer, event = anyio.run(commanded, root / "a")
    filled(root / "b")
    read = max(anyio.run(followed, root / "b") for _ in range(ROUNDS))
    both = max(anyio.run(told, root / "b") for _ in range(ROUNDS))
    program = Program(root / "h")
    try:
        starts = [anyio.run(program.started) for _ in range(STARTS)]
        crashes = [anyio.run(program.crashed) for _ in range(CRASHES)]
    finally:
        program.stop()
    processor, wall, held = (median(each) for each in zip(*starts, strict=True))
    next_event, told_end = (median(each) for each in zip(*crashes, strict=True))
    return [
        row("command to durable answer, p50", f"{answer * 1000:.2f} ms", ""),
        row("command to first event, p50", f"{event * 1000:.2f} ms", "≤ 5 ms"),
        row("tail of a journal, per CPU second", f"{read:,.0f}", "≥ 200,000"),
        row("the same, with both ends of a socket", f"{both:,.0f}", ""),
        row("host ready, CPU", f"{processor * 1000:.0f} ms", "≤ 150 ms"),
        row("host ready, memory", f"{held:.0f} MiB", "≤ 60 MB"),
        row("host ready, wall", f"{wall * 1000:.0f} ms", ""),
        row("host killed in a turn to next event", f"{next_event * 1000:.0f} ms", "≤ 1 s"),
        row("host killed in a turn to its reported end", f"{told_end * 1000:.0f} ms", ""),
    ]


def row(what: str, measured: str, target: str) -> dict[str, str]:
    """One line of the table."""
    return {"what": what, "measured": measured, "target": target}


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    on_one_core()
    root = Path(tempfile.mkdtemp(prefix="hb-", dir="/var/tmp"))
    try:
        found = rows(root)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    if given.json:
        print(json.dumps({"title": "The host", "rows": found}))
        return
    for each in [dict.fromkeys(COLUMNS, "") | {name: name for name in COLUMNS}, *found]:
        print("  ".join(f"{each[name]:<{width}}" for name, width in COLUMNS.items()))


if __name__ == "__main__":
    main()
