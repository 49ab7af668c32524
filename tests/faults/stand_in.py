"""A program that stands in for the server: it keeps processes, tells a log of it, and is killed.

    python -m tests.faults.stand_in STATE PROCESSES LINES [read-then-append]

Each process prints numbered lines to both its streams, every third one on a terminal, and every
third one only after it has exited: what it has left behind prints for it. The program
starts those that do not run yet and adopts the others, appends every event to a log of its own as
if it told a client, and ends with status 0 once all are closed. Tests kill it and run it again.
The last word plants a bug: output is read into memory and written to its file from there.
"""

from __future__ import annotations

import asyncio
import os
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from holdfast.exec.keeper.client_loop import KeeperClient, KeptProcess, ProcessSpec, TerminalSize
from holdfast.exec.model import Closed, Event, Exited, Output
from holdfast.exec.server.state_records import ProcessRecord, StateRecords
from holdfast.exec.storage import splice as source
from holdfast.exec.storage.retention import OutputFiles
from holdfast.exec.storage.retention_loop import Retention
from holdfast.exec.storage.splice import MOVE_BYTES_MAX, SpliceTarget
from holdfast.world import SystemDisk

PRINTER = (
    "i=0; while [ $i -lt {lines} ]; do i=$((i+1)); echo out $i of {key}; echo err $i >&2; done; "
    "exit 7"
)
LATE_PRINTER = "(sleep 0.1; {printer}) & exit 7"


def order(number: int, lines: int) -> ProcessSpec:
    key = f"printer-{number}"
    printer = PRINTER.format(lines=lines, key=key)
    return ProcessSpec(
        key=key,
        argv=("sh", "-c", LATE_PRINTER.format(printer=printer) if number % 3 == 1 else printer),
        cwd="/",
        env={"PATH": "/usr/bin:/bin"},
        terminal=TerminalSize() if number % 3 == 2 else None,
    )


def place(state: Path, key: str) -> Path:
    return state / "processes" / key


def as_line(event: Event) -> str:
    match event:
        case Output(seq, stream, data):
            return f"{seq} {stream} {data.hex()}"
        case Exited(seq, status):
            return f"{seq} exited {status}"
        case Closed(seq):
            return f"{seq} closed"


def is_over(state: Path, key: str) -> bool:
    """Whether a former server has seen the end of it, told it and let the process go."""
    if not place(state, key).exists():
        return False
    retained = OutputFiles.found(place(state, key))
    retained.close()
    return retained.position.is_closed


class Teller:
    """Tells the log of one process what its retention has, from where the log ends."""

    def __init__(self, state: Path, kept: KeptProcess, retention: Retention) -> None:
        self.kept, self.retention = kept, retention
        self.closed = asyncio.Event()
        self._log = os.open(state / f"told-{kept.key}", os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        told = os.pread(self._log, 2**30, 0)
        # Whoever is killed in the middle of a long write leaves a part of it: that was not told.
        os.ftruncate(self._log, told.rfind(b"\n") + 1)
        self._last = told.count(b"\n")
        retention.listen(self.tell)
        self.tell()

    def tell(self) -> None:
        while events := self.retention.events(self._last, 2**20):
            lines = "".join(as_line(event) + "\n" for event in events)
            assert os.write(self._log, lines.encode()) == len(lines)
            self._last = events[-1].seq
        if self.retention.is_closed:
            self.closed.set()


def read_then_append(source: int, place: SpliceTarget) -> int | None:
    """The bug: for a moment the bytes are in a process that can die, and nowhere else."""
    try:
        data = os.read(source, MOVE_BYTES_MAX)
    except BlockingIOError:
        return None
    assert place.offset is not None, "it prints too little for a ring"
    return os.pwrite(place.file, data, place.offset) if data else 0


async def keep(state: Path, processes: int, lines: int) -> None:
    keeping = await KeeperClient.open(state)
    records = StateRecords(state, SystemDisk())
    records.prepare()
    known = {record.key: record for record in records.processes()}
    records.sweep(known.values())
    held = {kept.key: kept for kept in await keeping.adopt()}
    os.write(1, b"ready\n")
    tellers: list[Teller] = []
    for number in range(processes):
        wanted = order(number, lines)
        kept = held.get(wanted.key)
        if kept is None and is_over(state, wanted.key):
            continue
        record = known.get(wanted.key) or ProcessRecord(
            wanted.key,
            "",
            wanted.key,
            wanted.argv,
            tty=wanted.terminal is not None,
            started_at_ms=0,
        )
        if kept is None:
            records.keep_process(record)
            kept = await keeping.start(wanted)
        end = records.end_of(record)
        retention = Retention.open(place(state, kept.key), kept, end=end)
        tellers.append(Teller(state, kept, retention))
    for teller in tellers:
        await teller.closed.wait()
    for teller in tellers:
        teller.retention.close()
        await teller.kept.forget()
    await keeping.close(end_keeper=True)


def complaints(state: Path, processes: int, lines: int) -> list[str]:
    """What a client could complain about after all has ended."""
    found: list[str] = []
    for number in range(processes):
        key = order(number, lines).key
        retained = OutputFiles.found(place(state, key))
        events = list(retained.events(0, None, retained.position.next_seq))
        retained.close()
        told = (state / f"told-{key}").read_text().splitlines()
        if told != [as_line(event) for event in events]:
            found.append(f"{key}: what was told is not what is kept")
        if [event.seq for event in events] != list(range(1, len(events) + 1)):
            found.append(f"{key}: the numbers have holes")
        if [event.status for event in events if isinstance(event, Exited)] != [7]:
            found.append(f"{key}: it did not exit once")
        if not isinstance(events[-1], Closed):
            found.append(f"{key}: it is not closed")
        found += [f"{key}: {word}" for word in _torn(events, key, lines)]
    return found


def _torn(events: list[Event], key: str, lines: int) -> list[str]:
    data = {
        name: b"".join(e.data for e in events if isinstance(e, Output) and e.stream in streams)
        for name, streams in {"out": ("stdout", "pty"), "err": ("stderr", "pty")}.items()
    }
    wanted = {
        "out": [f"out {number} of {key}" for number in range(1, lines + 1)],
        "err": [f"err {number}" for number in range(1, lines + 1)],
    }
    return [
        f"the lines of {name} are not each there once and in order"
        for name in wanted
        if [line for line in data[name].decode().splitlines() if line.startswith(name)]
        != wanted[name]
    ]


def main(state: Path, processes: int, lines: int, habits: list[str]) -> None:
    if "read-then-append" in habits:
        setattr(source, "move", read_then_append)  # noqa: B010  # mypy: it is a plant
    asyncio.run(keep(state, processes, lines))


def main_when_told(
    state: Path, processes: int, lines: int, habits: list[str], told: Connection
) -> None:
    """Be ready to begin, but let a tracer attach first: a message says that it has."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    told.send_bytes(b"all is loaded")
    told.recv_bytes()
    main(state, processes, lines, habits)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
