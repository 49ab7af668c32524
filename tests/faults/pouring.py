"""A program that stands in for the server: it keeps one process that pours, and is killed.

    python -m tests.faults.pouring STATE NOISE [alone]

The process puts out a file that is larger than a ring, and ends. The program starts it or adopts
it, and appends a line for every event to a log of its own, as if it told a client: the number, the
size and the sum of a piece of output. It ends with status 0 once all is told. The last word plants
a bug: the keeper is not asked to hold the position of the ring.
"""

from __future__ import annotations

import asyncio
import os
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from zlib import crc32

from holdfast.exec.keeper.client_loop import KeeperClient, KeptProcess, ProcessSpec
from holdfast.exec.model import Closed, Event, Exited, Output
from holdfast.exec.storage.retention import OutputFiles
from holdfast.exec.storage.retention_loop import Retention

LIMIT = 16 * 2**20
KEY = "pourer"


def as_line(event: Event) -> str:
    match event:
        case Output(seq, _, data):
            return f"{seq} {len(data)} {crc32(data)}"
        case Exited(seq, status):
            return f"{seq} exited {status}"
        case Closed(seq):
            return f"{seq} closed"


async def tell(retention: Retention, log: int) -> None:
    """Tell what is not in the log, and have nothing dropped before."""
    told = os.pread(log, 2**30, 0)
    os.ftruncate(log, told.rfind(b"\n") + 1)
    last, stirred = told.count(b"\n"), asyncio.Event()
    retention.keep_from(last + 1)
    retention.listen(stirred.set)
    while not (retention.is_closed and last == retention.next_seq - 1):
        while events := retention.events(last, 2**20):
            lines = "".join(as_line(event) + "\n" for event in events)
            assert os.write(log, lines.encode()) == len(lines)
            last = events[-1].seq
            retention.keep_from(last + 1)
        stirred.clear()
        if last == retention.next_seq - 1 and not retention.is_closed:
            await stirred.wait()


async def keep(state: Path, noise: Path) -> None:
    keeping = await KeeperClient.open(state)
    log = os.open(state / "told", os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    kept = next(iter(await keeping.adopt()), None)
    if kept is None and not is_over(state):
        env = {"PATH": "/usr/bin:/bin"}
        command = ("sh", "-c", f"cat {noise}; exit 7")
        kept = await keeping.start(ProcessSpec(key=KEY, argv=command, cwd="/", env=env))
    if kept is not None:
        retention = Retention.open(state / KEY, kept, bytes_max=LIMIT, is_needed=True)
        await tell(retention, log)
        retention.close()
        await kept.forget()
    await keeping.close(end_keeper=True)


def is_over(state: Path) -> bool:
    """Whether a former server has seen the end of it, told it and let the process go."""
    if not (state / KEY).exists():
        return False
    retained = OutputFiles.found(state / KEY)
    retained.close()
    return retained.position.is_closed


def complaints(state: Path, noise: bytes) -> list[str]:
    """What a client could complain about after all has ended."""
    found: list[str] = []
    *pieces, exited, closed = (state / "told").read_text().splitlines()
    if [exited.split()[1:], closed.split()[1:]] != [["exited", "7"], ["closed"]]:
        found.append("it did not exit once and close then")
    offset = 0
    for number, piece in enumerate(pieces, start=1):
        seq, size, checksum = map(int, piece.split())
        if seq != number:
            found.append(f"{seq} came instead of {number}")
        if crc32(noise[offset : offset + size]) != checksum:
            found.append(f"{seq} is not what was poured at {offset}")
        offset += size
    if offset != len(noise):
        found.append(f"{offset} of {len(noise)} bytes were told")
    return found[:3]


async def _held_by_nobody(_self: KeptProcess, *_asked: object) -> bool:
    """The bug: the position is only in a process that can die."""
    return True


def main_when_told(state: Path, noise: Path, habits: list[str], told: Connection) -> None:
    """Be ready to begin, but let a tracer attach first: a message says that it has."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if "alone" in habits:
        setattr(KeptProcess, "hold_position", _held_by_nobody)  # noqa: B010  # mypy: it is a plant
    told.send_bytes(b"all is loaded")
    told.recv_bytes()
    asyncio.run(keep(state, noise))


if __name__ == "__main__":
    asyncio.run(keep(Path(sys.argv[1]), Path(sys.argv[2])))
