"""A graft is what a full look would have been, at the price of what was touched."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.nouns import RelativePath
from holdfast.workbench.coverage import EVERYTHING, Coverage
from holdfast.workbench.diff.tree_changes import touched_tree
from holdfast.workbench.model import (
    STAGE_PREFIX,
    Checkpoint,
    TouchedPaths,
    UncoveredPath,
    UncoveredReason,
)
from holdfast.workbench.objects.formats import ObjectKind
from holdfast.workbench.objects.index import Index
from holdfast.workbench.objects.objects import Objects
from holdfast.workbench.objects.segments import Segments
from holdfast.workbench.scan.partial_scan import PartialScan
from holdfast.workbench.scan.scanner import ScanTarget, TreeScanner
from holdfast.workbench.store.store import CheckpointSource, Store

LATER_NS = 10**10  # a look so late that nothing is racy any more


def touching(*paths: str, whole: tuple[str, ...] = ()) -> TouchedPaths:
    return TouchedPaths(
        frozenset(map(RelativePath.of, paths)), frozenset(map(RelativePath.of, whole))
    )


class Bench:
    """A project, and a store that compares what a graft sees of it with what a look sees."""

    def __init__(self, project: Path, store: Store) -> None:
        self.project = project
        self.store = store
        self._looks = 0

    def look(self, coverage: Coverage = EVERYTHING) -> Checkpoint:
        """Look as one who has never looked before."""
        self._looks += 1
        return self.store.checkpoint(
            CheckpointSource(self.project, f"look {self._looks}", coverage)
        )

    def partial_checkpoint(
        self, over: Checkpoint, touched: TouchedPaths, coverage: Coverage = EVERYTHING
    ) -> Checkpoint:
        return self.store.partial_checkpoint(
            over, CheckpointSource(self.project, "draft-1", coverage), touched
        )

    def agrees(self, over: Checkpoint, touched: TouchedPaths) -> bool:
        """Whether a graft is as good as a look."""
        grafted, looked = self.partial_checkpoint(over, touched), self.look()
        return _told(grafted) == _told(looked)


def _told(checkpoint: Checkpoint) -> tuple[bytes, int, int, int]:
    return checkpoint.tree, checkpoint.files, checkpoint.size, checkpoint.uncovered


@pytest.fixture
def bench(project: Path, tmp_path: Path) -> Iterator[Bench]:
    for path in ("a", "d/a", "d/e/a", "d/e/b"):
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_bytes(path.encode())
    with Store.open(tmp_path / "store") as store:
        yield Bench(project, store)


def stand_in(path: Path) -> Path:
    """Put a directory where sandboxes put one."""
    path.mkdir()
    path.chmod(0o1755)
    return path


ACTS: dict[str, tuple[Callable[[Path], object], TouchedPaths]] = {
    "nothing": (lambda project: None, touching("a", "d/e")),
    "an edit": (lambda project: (project / "d/e/a").write_bytes(b"edited"), touching("d/e/a")),
    "a new file": (lambda project: (project / "d/new").write_bytes(b"new"), touching("d/new")),
    "a deletion": (lambda project: (project / "d/e/a").unlink(), touching("d/e/a")),
    "a link": (lambda project: (project / "d/link").symlink_to("a"), touching("d/link")),
    "a mode": (lambda project: (project / "d/e").chmod(0o700), touching("d/e")),
    "a file for a directory": (
        lambda project: (shutil.rmtree(project / "d/e"), (project / "d/e").write_bytes(b"file")),
        touching("d/e"),
    ),
    "a directory for a file": (
        lambda project: (
            (project / "a").unlink(),
            (project / "a/b").mkdir(parents=True),
            (project / "a/b/c").write_bytes(b"deep"),
        ),
        touching("a"),
    ),
    "a new directory": (
        lambda project: shutil.copytree(project / "d", project / "copy"),
        touching(whole=("copy",)),
    ),
    "a directory made anew": (
        lambda project: (shutil.rmtree(project / "d"), (project / "d").mkdir()),
        touching(whole=("d",)),
    ),
    "all gone": (lambda project: shutil.rmtree(project / "d"), touching("d", "d/e", "d/e/a")),
    "a parent gone": (lambda project: shutil.rmtree(project / "d"), touching("d/e/a")),
    "a parent that is a link now": (
        lambda project: (
            (project / "d").rename(project / "other"),
            (project / "d").symlink_to("other"),
        ),
        touching("d/e/a", whole=("other",)),
    ),
    "what stands in": (lambda project: stand_in(project / ".idea"), touching(".idea")),
    "what stands in inside of another": (
        lambda project: (stand_in(project / "d/.git"), stand_in(project / "d/.git/hooks")),
        touching("d/.git", "d/.git/hooks"),
    ),
    "what stood in and became more": (
        lambda project: (stand_in(project / ".idea") / "mine").write_bytes(b""),
        touching(".idea", ".idea/mine"),
    ),
    "a stage": (
        lambda project: (project / f"{STAGE_PREFIX}1").mkdir(),
        touching(f"{STAGE_PREFIX}1", f"{STAGE_PREFIX}1/0"),
    ),
}


@pytest.mark.parametrize("act", ACTS)
def test_what_was_touched_is_seen(bench: Bench, act: str) -> None:
    do, touched = ACTS[act]
    over = bench.look()
    do(bench.project)

    assert bench.agrees(over, touched)


def test_what_was_not_touched_is_not_seen(bench: Bench) -> None:
    over = bench.look()
    (bench.project / "d/e/a").write_bytes(b"edited")
    (bench.project / "d/e/b").write_bytes(b"by somebody else")
    grafted = bench.partial_checkpoint(over, touching("d/e/a"))

    assert [str(one.path) for one in bench.store.changes(over, grafted)] == ["d/e/a"]


class Counting(Objects):
    """Objects of a store, counting what is read of files."""

    read = 0

    def put(self, kind: ObjectKind, data: bytes) -> bytes:
        self.read += kind is ObjectKind.BLOB
        return super().put(kind, data)


def test_a_file_that_has_not_changed_is_not_read_again(
    segments: Segments, index: Index, project: Path
) -> None:
    (project / "d" / "whole").mkdir(parents=True)
    for name in ("a", "d/b", "d/whole/c", "d/whole/e"):
        (project / name).write_bytes(name.encode())
    ways = touched_tree(touching("a", "d/b", whole=("d/whole",)))
    root = os.open(project, os.O_RDONLY)

    def reads(late_ns: int) -> int:
        with index.writing() as rows:
            objects = Counting(segments, rows)
            aim = ScanTarget(root, "whole", EVERYTHING, time.time_ns() + late_ns)
            graft = PartialScan(
                objects, TreeScanner(objects, aim), origin="one", coverage=EVERYTHING
            )
            graft.run(root, None, ways)
            graft.note()
            objects.commit()
            return objects.read

    assert [reads(late_ns) for late_ns in (0, LATER_NS, LATER_NS)] == [4, 4, 0]
    (project / "d" / "b").write_bytes(b"edited")
    assert [reads(LATER_NS), reads(LATER_NS)] == [1, 0]
    os.close(root)


def test_what_is_left_out_stays_out(bench: Bench) -> None:
    coverage = Coverage(frozenset({RelativePath.of("d/e")}))
    over = bench.look(coverage)
    (bench.project / "d/e/a").write_bytes(b"edited")
    grafted = bench.partial_checkpoint(over, touching("d/e/a", whole=("d/e",)), coverage)

    assert grafted.tree == over.tree
    assert bench.store.uncovered(grafted) == (
        UncoveredPath(RelativePath.of("d/e"), UncoveredReason.POLICY),
    )


def test_a_stage_is_never_covered(bench: Bench) -> None:
    over = bench.look()
    (bench.project / f"{STAGE_PREFIX}1").mkdir()
    (bench.project / f"{STAGE_PREFIX}1" / "0").write_bytes(b"half done")

    assert bench.look().tree == over.tree


def test_a_directory_may_be_given_by_its_descriptor(bench: Bench) -> None:
    descriptor = os.open(bench.project, os.O_PATH)
    by_descriptor = CheckpointSource(Path(f"/proc/self/fd/{descriptor}"), "elsewhere")
    over = bench.store.checkpoint(by_descriptor)
    (bench.project / "a").write_bytes(b"edited")
    grafted = bench.store.partial_checkpoint(over, by_descriptor, touching("a"))
    os.close(descriptor)

    assert _told(grafted) == _told(bench.look())


def test_a_tree_that_is_spoiled_is_looked_at_anew(bench: Bench) -> None:
    damaged = replace(bench.look(), tree=bytes(32))

    assert bench.agrees(damaged, touching("a"))


NAMES = st.sampled_from(["a", "b", "a/a", "a/b", "b/a", "a/a/a", "a/a/b", "b/a/a"])
EDITS = st.lists(
    st.tuples(st.sampled_from(["write", "remove", "mkdir", "chmod", "link", "anew"]), NAMES),
    max_size=8,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)
@given(EDITS, st.lists(EDITS, min_size=1, max_size=4))
def test_any_edits_are_seen_as_a_full_look_sees_them(
    before: list[tuple[str, str]], turns: list[list[tuple[str, str]]]
) -> None:
    with tempfile.TemporaryDirectory() as here:
        project = Path(here) / "project"
        project.mkdir()
        for act, name in before:
            _do(project / name, act)
        with Store.open(Path(here) / "store") as store:
            bench = Bench(project, store)
            over, names, whole = bench.look(), set[str](), set[str]()
            for turn in turns:
                for act, name in turn:
                    _do(project / name, act)
                    (whole if act in {"mkdir", "anew"} else names).add(name)
                assert bench.agrees(over, touching(*names, whole=tuple(whole)))


def _do(path: Path, act: str) -> None:
    """Do one thing at a path, whatever is there; a parent that is missing is made."""
    if not path.parent.is_dir() or path.parent.is_symlink():
        return
    there = path.is_symlink() or path.exists()
    if act in {"remove", "anew"} and there:
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    if act == "write" and (not there or path.is_file()):
        path.write_bytes(os.urandom(3))
    if act == "chmod" and there and not path.is_symlink():
        path.chmod(0o700)
    if act == "link" and not there:
        path.symlink_to("a")
    if (act == "mkdir" and not there) or act == "anew":
        path.mkdir()
