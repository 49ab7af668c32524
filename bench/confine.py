"""What it costs to shut something in: places, and starts in them, beside plain starts.

    python bench/confine.py [--json]

Everything shares one core and is measured in turn, round after round; of each figure the median
counts. A start is measured from a bare interpreter, like the keeper's: what a fork costs depends on
who forks.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter

from alternating import on_one_core
from confined_starts import plane_rows
from sandboxes import sandbox_rows

from holdfast.confine import PlaceSpec, create, end
from holdfast.confine.failures import PlaceUnavailable

Row = dict[str, object]
SOURCE = Path(__file__).parent.parent / "src"
FILES, ROUNDS, STARTS = 100_000, 15, 200
CREATE_MOST, START_MOST = 10.0, 3.0  # milliseconds

# Run by a bare interpreter, which has the namespaces of a place as descriptors.
STARTER = """
import json, os, sys, time
sys.path.insert(0, sys.argv[1])
from holdfast.confine.entry import ProcessEntry, enter
os.sched_setaffinity(0, {int(sys.argv[2])})
namespaces, count = [int(each) for each in sys.argv[3].split(",")], int(sys.argv[4])
null, env, program = os.open("/dev/null", os.O_RDWR), {"PATH": "/usr/bin:/bin"}, "/bin/true"
files = {null: 0, os.dup(null): 1, os.dup(null): 2}
actions = [(os.POSIX_SPAWN_DUP2, null, each) for each in range(3)]
def plain():
    return os.posix_spawn(program, [program], env, setsid=True, file_actions=actions)
def alone():
    return enter(ProcessEntry([program], env, "/", program, files))
def joined():
    return enter(ProcessEntry([program], env, "/", program, files, namespaces))
taken = {plain: [], alone: [], joined: []}
for _ in range(count):
    for start, times in taken.items():
        began = time.perf_counter()
        os.waitpid(start(), 0)
        times.append(1000 * (time.perf_counter() - began))
print(json.dumps([sorted(times) for times in taken.values()]))
"""


def main() -> None:
    """Measure, and print a table or JSON."""
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    on_one_core()
    rows = [row for measure in MEASURES for row in measure()]
    if options.json:
        print(json.dumps({"title": "Confinement", "rows": rows}))
        return
    for row in rows:
        print("  ".join(f"{name}: {value}" for name, value in row.items()))


def place_rows() -> Iterator[Row]:
    """A place over many files, made and ended, and starts in it."""
    with _project(FILES) as spec:
        try:
            made, ended = zip(*(_made_and_ended(spec) for _ in range(ROUNDS)), strict=True)
        except PlaceUnavailable as unavailable:
            yield {"what": f"places: none here, {unavailable.reason}"}
            return
        yield _row(f"a place over {FILES:,} files: make", list(made), most=CREATE_MOST)
        yield _row("a place: end", list(ended))
        plain, alone, joined = _starts(spec)
    yield _row("a plain start, to its end", plain)
    yield _row("a start without privileges", alone, over=plain)
    yield _row("a start in a place", joined, over=plain, most=START_MOST)


MEASURES: list[Callable[[], Iterator[Row]]] = [place_rows, sandbox_rows, plane_rows]


def _row(
    what: str, times: list[float], *, over: list[float] | None = None, most: float | None = None
) -> Row:
    """Times in milliseconds: their median and least, and against what they were to be."""
    row: Row = {"what": what, "median ms": median(times), "least ms": min(times)}
    counted = median(times)
    if over is not None:
        counted -= median(over)
        row["over plain ms"] = counted
    if most is not None:
        row |= {"aim ms": most, "met": counted <= most}
    return row


@contextmanager
def _project(files: int) -> Iterator[PlaceSpec]:
    base = Path(tempfile.mkdtemp(prefix="bench-confine-"))
    try:
        for number in range(files // 100):
            directory = base / "project" / f"{number % 50}" / f"{number}"
            directory.mkdir(parents=True)
            for each in range(100):
                (directory / f"{each}").touch()
        yield PlaceSpec(directory=str(base / "draft"), project=str(base / "project"))
    finally:
        end(base / "draft")
        shutil.rmtree(base)


def _made_and_ended(spec: PlaceSpec) -> tuple[float, float]:
    began = perf_counter()
    place = create(spec)
    made = perf_counter()
    place.close()
    closed = perf_counter()
    end(spec.directory)
    return 1000 * (made - began), 1000 * (perf_counter() - closed)


def _starts(spec: PlaceSpec) -> list[list[float]]:
    with create(spec) as place:
        command = [sys.executable, "-I", "-S", "-c", STARTER, str(SOURCE)]
        core, namespaces = max(os.sched_getaffinity(0)), ",".join(map(str, place.namespaces))
        done = subprocess.run(
            [*command, str(core), namespaces, str(STARTS)],
            stdout=subprocess.PIPE,
            pass_fds=place.namespaces,
            check=True,
        )
    times: list[list[float]] = json.loads(done.stdout)
    return times


if __name__ == "__main__":
    main()
