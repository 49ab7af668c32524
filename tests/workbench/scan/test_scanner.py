"""A look finds what changed, and sees the same as one who has never looked before."""

from __future__ import annotations

import mmap
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from holdfast.nouns import RelativePath
from holdfast.workbench.coverage import EVERYTHING, Coverage
from holdfast.workbench.diff.tree_changes import node_at, uncovered_paths
from holdfast.workbench.model import UncoveredPath, UncoveredReason
from holdfast.workbench.objects.formats import Node, NodeKind, ObjectKind, Totals, name_of
from holdfast.workbench.objects.index import Index
from holdfast.workbench.objects.objects import Objects
from holdfast.workbench.objects.segments import Segments
from holdfast.workbench.scan.scanner import ScanResult, ScanTarget, TreeScanner
from tests.workbench.unprivileged import held_back

LATER_NS = 10**10  # a look so late that nothing is racy any more


class Counting(Objects):
    """Objects of a store, counting what is read of files."""

    read = 0

    def put(self, kind: ObjectKind, data: bytes) -> bytes:
        self.read += kind is ObjectKind.BLOB
        return super().put(kind, data)


class Watch:
    """Looks at one project again and again."""

    def __init__(self, objects: Counting, root: int) -> None:
        self.objects = objects
        self._root = root

    def look(
        self,
        dirty: Iterable[RelativePath] | None = None,
        *,
        origin: str = "here",
        coverage: Coverage = EVERYTHING,
        late_ns: int = LATER_NS,
    ) -> ScanResult:
        scanned_ns = time.time_ns() + late_ns
        scan = TreeScanner(self.objects, ScanTarget(self._root, origin, coverage, scanned_ns))
        self.objects.read = 0
        return scan.run(dirty)

    def node(self, looked: ScanResult, path: str) -> Node | None:
        return node_at(looked.tree, RelativePath.of(path), self.objects.tree)


@pytest.fixture
def watch(segments: Segments, index: Index, project: Path) -> Iterator[Watch]:
    root = os.open(project, os.O_RDONLY)
    with index.writing() as rows:
        yield Watch(Counting(segments, rows), root)
    os.close(root)


def fill(project: Path) -> None:
    for number in range(40):
        path = project / f"d{number % 4}" / f"e{number % 8}" / f"f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"file %d" % number)


@pytest.mark.promise("W9")
def test_everything_is_covered(watch: Watch, project: Path) -> None:
    (project / ".git" / "hooks").mkdir(parents=True)
    (project / ".git" / "hooks" / "pre-commit").write_bytes(b"#!/bin/sh\nexit 1\n")
    (project / ".gitignore").write_bytes(b"*\n")
    (project / "empty").mkdir(mode=0o700)
    (project / "nested" / ".git").mkdir(parents=True)
    (project / "nested" / ".git" / "HEAD").write_bytes(b"ref")
    Path(os.fsdecode(bytes(project) + b"/\xff\n:colon")).write_bytes(b"any name")
    (project / "dangling").symlink_to("nowhere")
    looked = watch.look()

    assert looked.totals == Totals(4, 17 + 2 + 3 + 8, 0)
    names = [node.name for node in watch.objects.tree(looked.tree)]
    assert names == sorted(
        [b".git", b".gitignore", b"empty", b"nested", b"\xff\n:colon", b"dangling"]
    )
    empty = watch.node(looked, "empty")
    assert empty is not None
    assert (empty.kind, empty.mode) == (NodeKind.DIRECTORY, 0o700)
    assert empty.mtime_ns == (project / "empty").lstat().st_mtime_ns


def test_what_did_not_change_is_not_read(watch: Watch, project: Path) -> None:
    fill(project)
    first = watch.look()
    assert watch.objects.read == 40
    second = watch.look()

    assert second == first._replace(is_changed=False)
    assert watch.objects.read == 0


@pytest.mark.promise("W8")
@pytest.mark.parametrize("dirty", [None, []])
@pytest.mark.parametrize("way", [b"", b"d1", b"d1/e1"])
def test_a_sight_of_what_is_not_kept_is_not_believed(
    watch: Watch, project: Path, way: bytes, dirty: list[RelativePath] | None
) -> None:
    fill(project)
    first = watch.look()
    sights, origin = watch.objects.rows.stat_cache, f"here {EVERYTHING.mark}"
    known = sights.known(origin, way)
    assert known is not None
    sights.note(origin, [(way, known._replace(tree=b"?" * 32))])
    (project / "d2" / "e2" / "f2").write_bytes(b"changed")
    told = None if dirty is None else [RelativePath.of("d2/e2/f2"), RelativePath.of("d1/e1/f1")]

    assert watch.look(told).tree == watch.look(origin="elsewhere").tree != first.tree
    if dirty is not None and not way:
        sights.note(origin, [(way, known._replace(tree=b"?" * 32))])
        assert watch.look(dirty).tree == watch.look(origin="elsewhere").tree


def test_one_change_is_one_read(watch: Watch, project: Path) -> None:
    fill(project)
    watch.look()
    (project / "d1" / "e1" / "f1").write_bytes(b"changed")
    looked = watch.look()

    assert looked.is_changed
    assert watch.objects.read == 1
    node = watch.node(looked, "d1/e1/f1")
    assert node is not None
    assert node.object == name_of(ObjectKind.BLOB, b"changed")


def test_what_was_written_a_moment_ago_is_read_again(watch: Watch, project: Path) -> None:
    (project / "racy").write_bytes(b"data")
    watch.look(late_ns=0)
    looked = watch.look(late_ns=0)

    assert not looked.is_changed
    assert watch.objects.read == 1
    watch.look()
    watch.look()
    assert watch.objects.read == 0


def test_racy_files_are_read_again_even_if_nobody_says_that_they_changed(
    watch: Watch, project: Path
) -> None:
    fill(project)
    watch.look(late_ns=0)
    (project / "d1" / "e1" / "f1").write_bytes(b"unseen!")
    looked = watch.look(dirty=[])

    assert looked.tree == watch.look(origin="elsewhere").tree


def test_only_the_way_to_what_changed_is_looked_at(watch: Watch, project: Path) -> None:
    fill(project)
    watch.look()
    (project / "d1" / "e1" / "f1").write_bytes(b"told")
    (project / "d2" / "e2" / "f2").write_bytes(b"not told")
    hinted = watch.look(dirty=[RelativePath.of("d1/e1/f1")])

    assert watch.objects.read == 1
    node = watch.node(hinted, "d2/e2/f2")
    assert node is not None
    assert node.object == name_of(ObjectKind.BLOB, b"file 2")
    assert watch.look().tree == watch.look(origin="elsewhere").tree


def test_a_directory_that_took_the_place_of_another_is_looked_through(
    watch: Watch, project: Path
) -> None:
    fill(project)
    watch.look()
    (project / "d1").rename(project / "gone")
    (project / "d2").rename(project / "d1")
    looked = watch.look(dirty=[RelativePath.of(name) for name in ("d1", "d2", "gone")])

    assert looked.tree == watch.look(origin="elsewhere").tree


def test_what_is_left_out_is_named_and_comes_back_when_it_is_wanted(
    watch: Watch, project: Path
) -> None:
    fill(project)
    coverage = Coverage(frozenset({RelativePath.of("d1/e1"), RelativePath.of("d2/e2/f2")}))
    looked = watch.look(coverage=coverage)

    assert list(uncovered_paths(looked.tree, watch.objects.tree)) == [
        UncoveredPath(RelativePath.of("d1/e1"), UncoveredReason.POLICY),
        UncoveredPath(RelativePath.of("d2/e2/f2"), UncoveredReason.POLICY),
    ]
    assert looked.totals.uncovered == 2
    assert watch.look().totals == Totals(40, 270, 0)


@pytest.mark.promise("W9")
def test_pipes_and_what_may_not_be_read_are_named(watch: Watch, project: Path) -> None:
    os.mkfifo(project / "pipe")
    for name in ("closed", "listed"):
        (project / name).mkdir()
        (project / name / "inside").write_bytes(b"")
    (project / "closed").chmod(0)
    (project / "listed").chmod(0o444)
    watch.objects.put(ObjectKind.PIECES, b"the segment must exist before we are nobody")
    with held_back():
        looked = watch.look()
    pipe = UncoveredPath(RelativePath.of("pipe"), UncoveredReason.SPECIAL)
    assert list(uncovered_paths(looked.tree, watch.objects.tree)) == [
        UncoveredPath(RelativePath.of("closed"), UncoveredReason.UNREADABLE),
        UncoveredPath(RelativePath.of("listed"), UncoveredReason.UNREADABLE),
        pipe,
    ]

    (project / "closed").chmod(0o755)
    (project / "listed").chmod(0o755)
    assert list(uncovered_paths(watch.look().tree, watch.objects.tree)) == [pipe]


def test_attributes_of_a_directory_are_kept(watch: Watch, project: Path) -> None:
    (project / "d").mkdir()
    watch.look()
    try:
        os.setxattr(project / "d", "user.note", b"1")
    except OSError:
        pytest.skip("the file system of the temporary directory has no extended attributes")
    node = watch.node(watch.look(), "d")

    assert node is not None
    assert node.xattrs == ((b"user.note", b"1"),)


def test_what_stands_in_for_a_protected_name_is_nothing(watch: Watch, project: Path) -> None:
    for name in (".idea", "d1/.git", "d1/.git/hooks"):
        (project / name).mkdir(parents=True)
        (project / name).chmod(0o1755)
    (project / "d1/.git/commondir").write_bytes(b".\n")
    (project / "d1/.git/commondir").chmod(0o1644)
    looked = watch.look()

    assert [node.name for node in watch.objects.tree(looked.tree)] == [b"d1"]
    assert watch.node(looked, "d1/.git") is None


def test_what_stood_in_and_became_more_is_seen(watch: Watch, project: Path) -> None:
    (project / "d" / ".idea").mkdir(parents=True)
    (project / "d" / ".idea").chmod(0o1755)
    assert watch.node(watch.look(), "d/.idea") is None
    (project / "d" / ".idea" / "mine").write_bytes(b"mine")

    assert watch.node(watch.look(), "d/.idea/mine") is not None
    (project / "d" / ".idea" / "mine").unlink()
    assert watch.node(watch.look(), "d/.idea") is None


@pytest.mark.parametrize("seed", range(6))
def test_looking_again_is_as_good_as_looking_anew(watch: Watch, project: Path, seed: int) -> None:
    """Whatever is done to a project, with hints or without, racy or not."""
    chance = Random(seed)
    fill(project)
    watch.look()
    for turn in range(25):
        dirty = [_disturb(project, chance) for _ in range(chance.randint(0, 3))]
        hints = [RelativePath.of(path) for path in dirty if path]
        late_ns = chance.choice([0, LATER_NS])
        looked = watch.look(chance.choice([None, hints]), late_ns=late_ns)
        anew = watch.look(origin=f"anew {turn}")
        assert (looked.tree, looked.totals) == (anew.tree, anew.totals)


def _disturb(project: Path, chance: Random) -> str:
    """Do one thing to a project, and name the path at which it was done."""
    everything = sorted(path for path in project.rglob("*"))
    files = [path for path in everything if stat.S_ISREG(path.lstat().st_mode)]
    directories = [path for path in everything if stat.S_ISDIR(path.lstat().st_mode)]
    somewhere = chance.choice([project, *directories])
    target = chance.choice(files) if files else somewhere / "first"
    acts: list[Callable[[], object]] = [
        lambda: target.write_bytes(chance.randbytes(chance.randint(0, 300))),
        lambda: target.unlink(missing_ok=True),
        lambda: target.exists() and target.chmod(chance.choice([0o600, 0o644, 0o755])),
        lambda: target.exists() and os.utime(target, (5, chance.randint(0, 9))),
    ]
    name = somewhere / f"n{chance.randint(0, 5)}"
    if not name.exists() and not name.is_symlink():
        acts += [name.mkdir, lambda: name.symlink_to("nowhere"), lambda: name.write_bytes(b"new")]
    elif name.is_dir() and not name.is_symlink():
        acts += [lambda: shutil.rmtree(name)]
    act = chance.randrange(len(acts))
    acts[act]()
    return str((target if act < 4 else name).relative_to(project))


@pytest.mark.promise("W9")
@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="there is no tmpfs at /dev/shm")
def test_on_tmpfs_a_write_through_a_mapping_is_found(segments: Segments, index: Index) -> None:
    """There such a write changes neither mtime nor ctime."""
    with TemporaryDirectory(dir="/dev/shm") as made, index.writing() as rows:
        (Path(made) / "mapped").write_bytes(b"a" * 8192)
        (Path(made) / "other").write_bytes(b"b")
        root = os.open(made, os.O_RDONLY)
        watch = Watch(Counting(segments, rows), root)
        first = watch.look()
        with (Path(made) / "mapped").open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
            mapping[0:1] = b"z"
        second = watch.look()
        os.close(root)

    assert second.is_changed
    assert second.tree != first.tree
