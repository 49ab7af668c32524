"""What durability costs: the journal against a bare write and fdatasync of the same bytes.

    python bench/journal.py [--json] [DIRECTORY]

All are measured in turn, append after append, on one core and in one directory of a real file
system (by default below `.cache`), because a disk changes its mind about how fast it is; then
medians are compared. Processor time is that of the whole process, its writer thread included.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import anyio
from alternating import on_one_core

from holdfast.world.commit_loop import GroupCommit
from holdfast.world.disk import SystemDisk
from holdfast.world.journal import Journal
from holdfast.world.journal_format import JournalRecord, encode_record, write_line
from holdfast.world.journal_reader import read_journal
from holdfast.world.schema import Schema
from holdfast.world.writer_loop import WriterThread

RECORD = {"type": "message", "id": "msg_0000000003", "text": "x" * 150}
LINE = write_line(JournalRecord(100_000, 1, 1, encode_record(RECORD)))
SCHEMA: Schema[Callable[[object], object]] = Schema("bench", 1)
TURNS, ROUNDS, APPENDS, WRITERS, APPENDS_EACH, SCANNED = 6, 3, 40, 64, 40, 100_000
LOOPS = ("asyncio", "uvloop")
COLUMNS = {"what": 34, "per record": 9, "CPU per record": 9, "rate": 10, "ratio": 17, "target": 0}


class Bare:
    """The least that can be done: one write and one fdatasync for each record."""

    def __init__(self, path: Path) -> None:
        self._number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def append(self) -> None:
        os.write(self._number, LINE)
        os.fdatasync(self._number)


class Stopwatch:
    """Seconds for each record, on the wall and of the processor, of each way."""

    def __init__(self) -> None:
        self._wall: defaultdict[str, list[float]] = defaultdict(list)
        self._processor: defaultdict[str, list[float]] = defaultdict(list)

    @contextmanager
    def taken(self, way: str) -> Generator[None]:
        """Add how long one record took."""
        processor, wall = process_time(), perf_counter()
        yield
        self._wall[way].append(perf_counter() - wall)
        self._processor[way].append(process_time() - processor)

    @contextmanager
    def shared(self, way: str) -> Generator[list[float]]:
        """Add how long records took of which as many as there are writers go together.

        Given is a list for the moments at which they were durable: who else uses the machine
        disturbs some batches, and medians do not show that.
        """
        processor, moments = process_time(), list[float]()
        yield moments
        self._processor[way].append((process_time() - processor) / len(moments))
        ends = moments[::WRITERS]
        self._wall[way] += [(end - begin) / WRITERS for begin, end in pairwise(ends)]

    def wall(self, way: str) -> float:
        """The time that a record takes."""
        return median(self._wall[way])

    def processor(self, way: str) -> float:
        """The work that a record is."""
        return median(self._processor[way])


async def measure(root: Path, watch: Stopwatch, loop: str) -> None:
    """Append in every way, round after round."""
    bare = Bare(root / "bare")
    journal = Journal.open(SystemDisk(), root / "log", schema=SCHEMA, log="bench")
    with WriterThread() as thread:
        log = GroupCommit(journal, run=thread.start)

        async def writer(moments: list[float]) -> None:
            for _ in range(APPENDS_EACH):
                await log.append(RECORD)
                moments.append(perf_counter())

        for _ in range(ROUNDS):
            for _ in range(APPENDS):
                with watch.taken("bare"):
                    bare.append()
                with watch.taken("journal"):
                    journal.append([encode_record(RECORD)])
                with watch.taken(f"task {loop}"):
                    await log.append(RECORD)
            with watch.shared(f"tasks {loop}") as moments:
                async with anyio.create_task_group() as tasks:
                    for _ in range(WRITERS):
                        tasks.start_soon(writer, moments)
    journal.close()


def scan_speed(root: Path) -> float:
    """Bytes a second when a journal is read from its beginning."""
    journal = Journal.open(SystemDisk(), root / "scanned", schema=SCHEMA, log="bench")
    data = encode_record(RECORD)
    for _ in range(SCANNED // 1000):
        journal.append([data] * 1000)
    journal.close()
    speeds: list[float] = []
    for _ in range(5):
        begin = perf_counter()
        found = sum(1 for _ in read_journal(SystemDisk(), root / "scanned", schema=SCHEMA))
        speeds.append((root / "scanned").stat().st_size / (perf_counter() - begin))
        assert found == SCANNED
    return median(speeds)


def rows(watch: Stopwatch, speed: float) -> list[dict[str, str]]:
    """The table: each way with its time, its rate and how it compares with the bare one."""
    bare = watch.wall("bare")

    def row(what: str, way: str, target: str = "") -> dict[str, str]:
        each = watch.wall(way)
        ratio = f"{bare / each:.1f}x its rate" if "8x" in target else f"{each / bare:.2f}x its time"
        return {
            "what": what,
            "per record": f"{each * 1e6:.0f} µs",
            "CPU per record": f"{watch.processor(way) * 1e6:.0f} µs",
            "rate": f"{1 / each:.0f}/s",
            "ratio": ratio if target else "",
            "target": target,
        }

    table = [
        row("bare write + fdatasync", "bare"),
        row("journal, one writer", "journal", "<= 1.5x"),
    ]
    for loop in LOOPS:
        table += [
            row(f"group commit, one task, {loop}", f"task {loop}", "<= 1.5x"),
            row(f"group commit, {WRITERS} tasks, {loop}", f"tasks {loop}", ">= 8x"),
        ]
    each = len(LINE) / speed
    table.append(
        {
            "what": "reading a journal",
            "per record": f"{each * 1e6:.0f} µs",
            "rate": f"{1 / each:.0f}/s",
            "ratio": f"{speed / 1e6:.0f} MB/s",
        }
    )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what durability costs.")
    parser.add_argument("directory", nargs="?", default=".cache", type=Path)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    args.directory.mkdir(exist_ok=True)
    on_one_core()
    root, watch = Path(tempfile.mkdtemp(dir=args.directory)), Stopwatch()
    try:
        for loop in LOOPS * TURNS:
            options = {"use_uvloop": loop == "uvloop"}
            anyio.run(measure, root, watch, loop, backend_options=options)
        table = rows(watch, scan_speed(root))
    finally:
        shutil.rmtree(root)
    if args.json:
        title = f"Journal ({len(LINE)}-byte records, all on one core)"
        print(json.dumps({"title": title, "rows": table}))
        return
    for row in table:
        print("".join(f"{row.get(name, ''):{width}}" for name, width in COLUMNS.items()))


if __name__ == "__main__":
    main()
