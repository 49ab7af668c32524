"""What durability costs: the journal against a bare write and fdatasync of the same bytes.

    python bench/journal.py [--json] [DIRECTORY]

All are measured in turn, round after round, in one directory of a real file system (by default
below `.cache`), because a disk changes its mind about how fast it is; then medians are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import anyio

from holdfast.world.commit_loop import GroupCommit
from holdfast.world.core.records import Record, encode_record, write_line
from holdfast.world.disk import SystemDisk
from holdfast.world.journal import Journal
from holdfast.world.reading import read_journal
from holdfast.world.schema import Schema
from holdfast.world.writer_loop import WriterThread

RECORD = {"type": "message", "id": "msg_0000000003", "text": "x" * 150}
LINE = write_line(Record(100_000, 1, 1, encode_record(RECORD)))
SCHEMA: Schema[Callable[[object], object]] = Schema("bench", 1)
ROUNDS, APPENDS, WRITERS, APPENDS_EACH, SCANNED = 15, 40, 64, 40, 100_000


class Bare:
    """The least that can be done: one write and one fdatasync for each record."""

    def __init__(self, path: Path) -> None:
        self._number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def append(self) -> None:
        os.write(self._number, LINE)
        os.fdatasync(self._number)


async def measure(root: Path, thread: WriterThread) -> dict[str, list[float]]:
    """Seconds for each record, of each way, in each round."""
    bare = Bare(root / "bare")
    journal = Journal.open(SystemDisk(), root / "log", schema=SCHEMA, log="bench")
    log = GroupCommit(journal, run=thread.start)
    seconds: dict[str, list[float]] = {"bare": [], "journal": [], "task": [], "tasks": []}

    async def writer(count: int) -> None:
        for _ in range(count):
            await log.append(RECORD)

    for _ in range(ROUNDS):
        for _ in range(APPENDS):
            begin = perf_counter()
            bare.append()
            middle = perf_counter()
            journal.append([encode_record(RECORD)])
            seconds["bare"].append(middle - begin)
            seconds["journal"].append(perf_counter() - middle)
        for _ in range(APPENDS):
            begin = perf_counter()
            await log.append(RECORD)
            seconds["task"].append(perf_counter() - begin)
        begin = perf_counter()
        async with anyio.create_task_group() as tasks:
            for _ in range(WRITERS):
                tasks.start_soon(writer, APPENDS_EACH)
        seconds["tasks"].append((perf_counter() - begin) / (WRITERS * APPENDS_EACH))
    journal.close()
    return seconds


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


def rows(seconds: dict[str, list[float]], speed: float) -> list[dict[str, str]]:
    """The table: each way with its time, its rate and how it compares with the bare one."""
    bare, journal, task, tasks = (median(seconds[name]) for name in seconds)

    def row(what: str, each: float, ratio: str, target: str) -> dict[str, str]:
        time, rate = f"{each * 1e6:.0f} µs", f"{1 / each:.0f}/s"
        return {"what": what, "per record": time, "rate": rate, "ratio": ratio, "target": target}

    return [
        row("bare write + fdatasync", bare, "", ""),
        row("journal, one writer", journal, f"{journal / bare:.2f}x its time", "<= 1.5x"),
        row("group commit, one task", task, f"{task / bare:.2f}x its time", ""),
        row(f"group commit, {WRITERS} tasks", tasks, f"{bare / tasks:.1f}x its rate", ">= 8x"),
        row("reading a journal", len(LINE) / speed, f"{speed / 1e6:.0f} MB/s", ""),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what durability costs.")
    parser.add_argument("directory", nargs="?", default=".cache", type=Path)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    args.directory.mkdir(exist_ok=True)
    root = Path(tempfile.mkdtemp(dir=args.directory))
    try:
        with WriterThread() as thread:
            seconds = anyio.run(measure, root, thread)
        table = rows(seconds, scan_speed(root))
    finally:
        shutil.rmtree(root)
    if args.json:
        print(json.dumps({"title": f"Journal ({len(LINE)}-byte records)", "rows": table}))
        return
    for row in table:
        print("{what:26} {per record:>10} {rate:>10}  {ratio:16} {target}".format_map(row))


if __name__ == "__main__":
    main()
