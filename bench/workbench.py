"""What checkpoints, drafts and publications cost, beside others who keep snapshots.

    python bench/workbench.py [--json] [DIRECTORY]

Figures are milliseconds of processor time on one core, in a directory of a real file system (by
default below `.cache`). Whoever is compared is measured in turn, and the least of each counts,
because others use the machine, too. Trees have twenty files in a directory, of 6 KB on average;
they are made once, stay for the next time, and are in memory before anybody looks. What people wait
for is shown in wall time, too. Before each figure, memory for what is written is at hand, because a
virtual machine may have given it back. Git is measured with its processes, as it is used; the store
is open, as in a program that stays. So is the workbench in one row of restoring, in the other it is
opened for that: no row counts the start of an interpreter.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter
from typing import NamedTuple

from alternating import have_memory, on_one_core
from snapshot_peers import DURABLE, Git, Restic, copy, processor_seconds

from holdfast.failures import Failure
from holdfast.nouns import RelativePath
from holdfast.workbench import (
    CheckpointSource,
    DraftMode,
    NewContent,
    PublishOrder,
    RestoreOrder,
    Store,
    Workbench,
    apply,
    checkpoint,
    discard,
    open_draft,
    publish,
    restore,
)

Row = dict[str, object]
MIDDLE, MANY, IN_ONE_DIRECTORY, MEAN_BYTES = 6_500, 100_000, 20, 6000
LARGE_BYTES, EDIT_BYTES, GROWTH_MOST = 2**30, 4096, 2 * 2**20
PUBLISHED, PUBLISHED_BYTES = 100, 16 * 2**10
ROUNDS, PUBLISHED_ROUNDS, FIRSTS = 4, 8, 2
FIRST_BYTES, DEED_BYTES = 512 * 2**20, 16 * 2**20  # more than is written, of what is measured
RESTORED = 40  # so often, because it takes so little
RACY = 0.05  # seconds after which a file that was written counts as resting


def main() -> None:
    """Measure, and print a table or JSON."""
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--json", action="store_true")
    arguments.add_argument("directory", nargs="?", default=".cache", type=Path)
    options = arguments.parse_args()
    on_one_core()
    options.directory.mkdir(exist_ok=True)
    rows: list[Row] = []
    for measure in (restore_rows, middle_rows, many_rows, large_rows, publish_rows):
        began = perf_counter()
        base = Path(tempfile.mkdtemp(prefix="bench-workbench-", dir=options.directory)).absolute()
        try:
            rows += measure(base)
        finally:
            shutil.rmtree(base, ignore_errors=True)
        print(f"  {measure.__name__}: {perf_counter() - began:.0f} s", file=sys.stderr)
    if options.json:
        title = "Workbench (ms of processor time; ours is durable)"
        print(json.dumps({"title": title, "rows": [_shown(row) for row in rows]}))
        return
    for row in rows:
        print("  ".join(f"{name}: {value}" for name, value in _shown(row).items()))


def middle_rows(base: Path) -> Iterator[Row]:
    """A project of some thousand files, beside everyone."""
    project = tree(base, MIDDLE)
    with ExitStack() as closing:
        first, snapshots = _firsts(base, project, _everyone, closing)
        time.sleep(RACY)
        same = _in_turn(snapshots, 3)
        edited = _in_turn(snapshots, 3, before=lambda turn: _edit(project, 40 + turn))
    yield _row(f"first, {MIDDLE:,} files", first, most_of_git=1 / 3)
    yield _row(f"no change, {MIDDLE:,} files", same, most_of_git=1)
    yield _row(f"one changed of {MIDDLE:,}", edited)
    if not Restic.is_here():
        yield {"what": "restic: not installed here, so not measured"}
    if shutil.which("jj") is None:
        yield {"what": "jj: neither PyPI nor npm nor Debian has it, so not measured"}


def many_rows(base: Path) -> Iterator[Row]:
    """A project of very many small files, beside git; and how soon a draft of it is there."""
    project = tree(base, MANY)
    with ExitStack() as closing:
        first, snapshots = _firsts(base, project, _both, closing)
        yield _row(f"first, {MANY:,} files", first, most_of_git=1 / 3)
        time.sleep(RACY)
        yield _row(f"no change, {MANY:,} files", _in_turn(snapshots, ROUNDS), most_of_git=1)
        edited = _in_turn(snapshots, ROUNDS, before=lambda turn: _edit(project, turn))
        yield _row(f"one changed of {MANY:,}", edited, most_of_git=1)
    try:
        opened = _draft_times(Workbench.at(project, base / "state"))
    except Failure as failure:
        yield {"what": f"draft: no overlay here ({failure.code})"}
    else:
        yield _row(f"draft of {MANY:,} files, wall time", {"ours": opened}, most_ms=50)


Snapshots = dict[str, Callable[[], object]]


@dataclass
class Ours:
    """Makes checkpoints of a project in a store; every call compares the whole tree."""

    store: Store
    project: Path

    def __call__(self) -> None:
        """Make a checkpoint."""
        self.store.checkpoint(CheckpointSource(self.project))


def _firsts(
    base: Path,
    project: Path,
    make: Callable[[Path, Path, ExitStack], Snapshots],
    closing: ExitStack,
) -> tuple[dict[str, float], Snapshots]:
    """What a first snapshot takes everyone, the least of some; and the last ones, to go on with."""
    taken: dict[str, list[float]] = {}
    snapshots: Snapshots = {}
    for turn in range(FIRSTS):
        home = base / f"first{turn}"
        home.mkdir()
        snapshots = make(home, project, closing)
        for who, work in snapshots.items():
            have_memory(FIRST_BYTES, base)
            taken.setdefault(who, []).append(processor_seconds(work))
    return {who: min(times) for who, times in taken.items()}, snapshots


def _both(home: Path, project: Path, closing: ExitStack) -> Snapshots:
    store = closing.enter_context(Store.open(home / "store"))
    git = Git(project, home / "git")
    return {"ours": Ours(store, project), "git": git.snapshot}


def _everyone(home: Path, project: Path, closing: ExitStack) -> Snapshots:
    snapshots = _both(home, project, closing) | {
        "git, durable": Git(project, home / "durable", DURABLE).snapshot,
        "cp -a": lambda: copy(project, Path(tempfile.mkdtemp(dir=home))),
    }
    if Restic.is_here():
        snapshots["restic"] = Restic(project, home / "restic").snapshot
    return snapshots


def large_rows(base: Path) -> Iterator[Row]:
    """A few bytes changed in one large file."""
    project = large(base)
    path = project / "large"
    git = Git(project, base / "git")
    git.run("-c", "core.compression=0", "add", "--all")  # what is measured comes later
    with Store.open(base / "store") as store:
        first = _least(lambda: store.checkpoint(CheckpointSource(project)), 1)
        before = _bytes_below(base / "store" / "seg")
        with path.open("r+b") as file:
            file.seek(LARGE_BYTES // 3)
            file.write(os.urandom(EDIT_BYTES))
        edited = {
            "ours": _least(lambda: store.checkpoint(CheckpointSource(project)), 1),
            "git": _least(git.snapshot, 1),
        }
        grown = _bytes_below(base / "store" / "seg") - before
    yield _row("first, one file of 1 GiB", {"ours": first})
    yield _row("4 KiB changed in 1 GiB", edited, most_of_git=1 / 20)
    yield {
        "what": "growth by that, bytes",
        "ours": grown,
        "aim": f"<= {GROWTH_MOST:,}",
        "met": grown <= GROWTH_MOST,
    }


def restore_rows(base: Path) -> Iterator[Row]:
    """One file brought back; before others are removed by the hundred, which makes new ones dear.

    For a while ext4 gives no inode away again, and passes all of those for each that is made.
    """
    workbench, paths = _hundred(base)
    what = f"restore one changed of {PUBLISHED} files"
    with workbench.kept_open() as kept_open:
        restored = list(_restored(kept_open, paths[0]))
    yield _row(f"{what}, workbench at hand", {"ours": _processor(restored)}, most_ms=5)
    yield _row(f"{what}, workbench at hand, wall time", {"ours": _wall(restored)})
    restored = list(_restored(workbench, paths[0]))
    yield _row(f"{what}, workbench opened for it", {"ours": _processor(restored)})


def publish_rows(base: Path) -> Iterator[Row]:
    """Files published, beside writing and syncing the same bytes."""
    workbench, paths = _hundred(base)
    chance = Random(2)
    ours, bare = list[Taken](), list[Taken]()
    for turn in range(PUBLISHED_ROUNDS):
        data = [chance.randbytes(PUBLISHED_BYTES) for _ in paths]
        checkpoint(workbench)
        steps = [NewContent(path, each) for path, each in zip(paths, data, strict=True)]
        draft = apply(workbench, None, steps).draft
        order = PublishOrder(draft=draft.id)
        have_memory(DEED_BYTES, base)
        ours.append(_taken(partial(publish, workbench, order)))
        discard(workbench, draft.id)
        have_memory(DEED_BYTES, base)
        bare.append(_taken(partial(_write_and_sync, base / f"bare{turn}", data)))
    what = f"publish {PUBLISHED} files"
    row = _row(what, {"ours": _processor(ours), "write + fsync": _processor(bare)})
    # Neighbours in time: a machine that others use is slow for both, or quick for both.
    ratio = median(one.processor / other.processor for one, other in zip(ours, bare, strict=True))
    yield row | {"ours / write + fsync": ratio, "aim": "<= 3", "met": ratio <= 3}
    yield _row(f"{what}, wall time", {"ours": _wall(ours), "write + fsync": _wall(bare)})


def _hundred(base: Path) -> tuple[Workbench, list[RelativePath]]:
    """The workbench of a project, and the paths of its files."""
    project = base / "project"
    project.mkdir()
    paths = [RelativePath.of(f"d{number % 7}/f{number}") for number in range(PUBLISHED)]
    for path in paths:
        whole = project / str(path)
        whole.parent.mkdir(exist_ok=True)
        whole.write_bytes(os.urandom(PUBLISHED_BYTES))
    return Workbench.at(project, base / "state"), paths


def tree(base: Path, count: int) -> Path:
    """A tree of so many files; whoever measures may edit some of them.

    All of it is in memory: else whoever is measured first would read it from the disk for all.
    """
    project = _once(base, f"tree-{count}", lambda project: fill(project, count))
    for path in project.rglob("*.py"):
        path.read_bytes()
    return project


def large(base: Path) -> Path:
    """A directory with one large file, in which whoever measures may write."""
    return _once(base, "tree-large", _fill_one)


def _once(base: Path, name: str, make: Callable[[Path], None]) -> Path:
    """A directory beside others that were made before; made whole, or not at all."""
    project = base.parent / f"bench-workbench-{name}"
    if not project.is_dir():
        make(base / name)
        (base / name).rename(project)
    return project


def _fill_one(project: Path) -> None:
    project.mkdir()
    chance = Random(1)
    with (project / "large").open("wb") as file:
        for _ in range(LARGE_BYTES // 2**20):
            file.write(chance.randbytes(2**20))


def fill(project: Path, count: int) -> None:
    """Make files that are as long as the source of a program, and compress like it."""
    chance = Random(count)
    source = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    for number in range(count):
        place = number // IN_ONE_DIRECTORY
        directory = project / f"a{place % 50}" / f"b{place // 50 % 50}" / f"c{place // 2500}"
        if number % IN_ONE_DIRECTORY == 0:
            directory.mkdir(parents=True, exist_ok=True)
        size = int(MEAN_BYTES * chance.uniform(0.1, 1.9))
        at = chance.randrange(len(source) - size)
        (directory / f"f{number}.py").write_bytes(b"# %d\n" % number + source[at : at + size])


def _edit(project: Path, number: int) -> None:
    """Change one file; it is resting when it is looked at."""
    (project / "a0" / "b0" / "c0" / f"f{number % IN_ONE_DIRECTORY}.py").write_bytes(
        os.urandom(1000)
    )
    time.sleep(RACY)


def _in_turn(
    snapshots: dict[str, Callable[[], object]],
    rounds: int,
    *,
    before: Callable[[int], None] = lambda _: None,
) -> dict[str, float]:
    taken: dict[str, list[float]] = {who: [] for who in snapshots}
    for turn in range(rounds):
        before(turn)
        for who, work in snapshots.items():
            taken[who].append(processor_seconds(work))
    return {who: min(times) for who, times in taken.items()}


def _least(work: Callable[[], object], rounds: int) -> float:
    return min(processor_seconds(work) for _ in range(rounds))


def _draft_times(workbench: Workbench) -> float:
    """The least time in which a draft is there; for a person, so it is wall time."""
    times: list[float] = []
    for _ in range(ROUNDS):
        began = perf_counter()
        draft = open_draft(workbench, DraftMode.OVERLAY)
        times.append(perf_counter() - began)
        discard(workbench, draft.id)
    return min(times)


class Taken(NamedTuple):
    """How long something took: of the processor, and on the clock."""

    processor: float
    wall: float


def _taken(work: Callable[[], object]) -> Taken:
    began = perf_counter()
    return Taken(processor_seconds(work), perf_counter() - began)


def _processor(times: list[Taken]) -> float:
    return min(each.processor for each in times)


def _wall(times: list[Taken]) -> float:
    return min(each.wall for each in times)


def _restored(workbench: Workbench, path: RelativePath) -> Iterator[Taken]:
    """What it takes to bring back a file that was changed, from a first look to its report."""
    made = checkpoint(workbench)
    have_memory(DEED_BYTES, workbench.project.parent)
    for _ in range(RESTORED):
        (workbench.project / str(path)).write_bytes(os.urandom(PUBLISHED_BYTES))
        time.sleep(RACY)
        order = RestoreOrder(checkpoint=made.id, only=(path,))
        yield _taken(partial(restore, workbench, order))


def _write_and_sync(directory: Path, data: list[bytes]) -> None:
    directory.mkdir()
    for number, each in enumerate(data):
        with (directory / f"{number}").open("wb") as file:
            file.write(each)
            file.flush()
            os.fsync(file.fileno())


def _bytes_below(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.iterdir())


def _row(
    what: str,
    seconds: dict[str, float],
    *,
    most_of_git: float | None = None,
    most_ms: float | None = None,
) -> Row:
    row: Row = {"what": what, **{who: 1000 * taken for who, taken in seconds.items()}}
    if "git" in seconds:
        row["ours / git"] = ratio = seconds["ours"] / seconds["git"]
        if most_of_git is not None:
            row |= {"aim": f"<= {most_of_git:.2g} of git", "met": ratio <= most_of_git}
    if most_ms is not None:
        row |= {"aim": f"<= {most_ms:g} ms", "met": 1000 * seconds["ours"] <= most_ms}
    return row


COLUMNS = (
    "what",
    "ours",
    "git",
    "git, durable",
    "cp -a",
    "restic",
    "write + fsync",
    "ours / git",
    "ours / write + fsync",
    "aim",
    "met",
)


def _shown(row: Row) -> Row:
    """The same row, its columns in order, and large numbers in full."""
    assert row.keys() <= set(COLUMNS)
    return {column: _plain(row[column]) for column in COLUMNS if column in row}


def _plain(value: object) -> object:
    return f"{value:,.0f}" if isinstance(value, float | int) and value >= 1000 else value


if __name__ == "__main__":
    main()
