"""Real files are changed as a whole, byte for byte, or not at all."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from holdfast.workbench.failures import MarkerDamaged, MarkerForeign, TransactionUnsettled
from holdfast.workbench.model import PathChange, ignore_progress
from holdfast.workbench.store.store import RESCUED
from holdfast.workbench.transaction import machine as publication
from holdfast.workbench.transaction.executor import Executor
from holdfast.workbench.transaction.machine import (
    Marker,
    Purpose,
    Step,
    TransactionOutcome,
    TransactionResult,
    TransactionState,
)
from holdfast.workbench.transaction.site import read_marker
from holdfast.workbench.transaction.stage import EXCHANGING
from holdfast.workbench.transaction.transaction import execute
from holdfast.world import SystemDisk
from holdfast.world.disk import SystemFile
from holdfast.world.failures import DiskDenied, DiskFull, DiskIo, DiskReadOnly, DiskUnusable
from tests.faults.mounts import make_ext4, missing_for_mounts, mounted
from tests.workbench.grounds import (
    KEY,
    STAGE,
    Ground,
    Thing,
    Tree,
    directory,
    drive,
    file,
    fresh_ground,
    in_child,
    link,
    live_in_the_past,
    plant,
    quick_directory,
    read,
)

FINISHED = TransactionOutcome(TransactionResult.FINISHED, KEY)
MISSING = missing_for_mounts()
mounts = pytest.mark.skipif(MISSING is not None, reason=f"nothing can be mounted: {MISSING}")


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    made = Ground(tmp_path)
    yield made
    made.close()


BEFORE: dict[bytes, Thing] = {
    b"edited": file(b"1", note=b"old"),
    b"mode": file(b"2"),
    b"deleted": file(b"3"),
    b"relinked": link(b"edited"),
    b"link to file": link(b"mode"),
    b"file to link": file(b"4", 0o600),
    b"gone": directory(0o700),
    b"gone/deep": directory(0o755, note=b"x"),
    b"gone/deep/leaf": file(b"5"),
    b"closed and gone": directory(0o555),
    b"closed and gone/leaf": file(b"6"),
    b"file to directory": file(b"7"),
    b"directory to file": directory(),
    b"directory to file/leaf": file(b"8"),
    b"opened": directory(0o555, old=b"1"),
    b"untouched": file(b"9", 0o640, kept=b"\0\xff"),
}
AFTER: dict[bytes, Thing] = {
    b"edited": file(b"one", note=b"new"),
    b"mode": file(b"2", 0o755),
    b"created \xff\n": file(b"x" * 100_000, 0o4711),
    b"empty": file(b""),
    b"relinked": link(b"nowhere/\xff"),
    b"link to file": file(b"a link no more"),
    b"file to link": link(b"edited"),
    b"new": directory(0o2775, note=b"y"),
    b"new/deep": directory(),
    b"new/deep/leaf": file(b"leaf"),
    b"file to directory": directory(),
    b"file to directory/leaf": file(b"7"),
    b"directory to file": link(b"elsewhere"),
    b"opened": directory(0o755, new=b"2"),
    b"opened/leaf": file(b"1"),
    b"closed": directory(0o500),
    b"closed/leaf": file(b"in a closed one"),
    b"untouched": file(b"9", 0o640, kept=b"\0\xff"),
}


@pytest.mark.promise("W4", "W9")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (file(b"1"), file(b"2")),
        (file(b"1"), file(b"1", 0o755)),
        (file(b"1"), file(b"1", note=b"new")),
        (None, file(b"2")),
        (None, link(b"2")),
        (None, directory(0o711)),
        (None, directory(0o500, note=b"new")),
        (file(b"1"), None),
        (link(b"1"), None),
        (directory(0o500), None),
        (directory(0o755), directory(0o700)),
        (directory(0o500, a=b"1"), directory(0o755, b=b"2")),
        (file(b"1"), directory()),
        (directory(), link(b"1")),
        (link(b"1"), link(b"2")),
    ],
)
def test_one_thing_becomes_another(
    ground: Ground, before: Thing | None, after: Thing | None
) -> None:
    plant(ground.project, {b"x": before} if before else {})
    wanted = {b"x": after} if after else {}

    outcome = ground.execute(ground.changes(wanted))

    assert outcome == FINISHED
    assert ground.told == [FINISHED]
    assert ground.tree() == wanted
    assert ground.is_tidy()


@pytest.mark.promise("W4", "W9")
def test_a_whole_tree_becomes_another_and_back(ground: Ground) -> None:
    plant(ground.project, BEFORE)

    assert ground.execute(ground.changes(AFTER)) == FINISHED
    assert ground.tree() == AFTER
    assert ground.execute(ground.changes(BEFORE)) == FINISHED
    assert ground.tree() == BEFORE
    assert ground.is_tidy()


NAMES = [b"a", b"b \xff", b"d", b"d/x", b"d/y", b"d/e", b"d/e/z", b"f", b"f/w"]
LEAVES = [
    *(file(data, mode) for data in (b"", b"1", b"22") for mode in (0o644, 0o755, 0o400)),
    file(b"1", note=b"x"),
    link(b"a"),
    link(b"../outside"),
]
DIRECTORIES = [directory(mode) for mode in (0o755, 0o700, 0o555)] + [directory(0o755, note=b"x")]


@st.composite
def trees(draw: st.DrawFn) -> dict[bytes, Thing]:
    """The same things appear at many paths, so that likeness proves nothing."""
    tree: dict[bytes, Thing] = {}
    for path in NAMES:
        parent = path.rpartition(b"/")[0]
        if parent and (parent not in tree or tree[parent].kind != "directory"):
            continue
        thing = draw(st.sampled_from([None, *LEAVES, *(DIRECTORIES if path in WITH_BELOW else [])]))
        if thing is not None:
            tree[path] = thing
    return tree


WITH_BELOW = {b"d", b"d/e", b"f"}


@pytest.fixture
def quick_path(tmp_path: Path) -> Iterator[Path]:
    with quick_directory(tmp_path) as made:
        yield made


@pytest.mark.promise("W4", "W9")
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(before=trees(), after=trees())
def test_any_tree_becomes_any_other(quick_path: Path, before: Tree, after: Tree) -> None:
    with fresh_ground(quick_path) as ground:
        plant(ground.project, before)
        changes = ground.changes(after)

        if os.geteuid() != 0 and is_closed_for(changes, before):
            with pytest.raises(DiskDenied):
                ground.execute(changes)
            assert ground.tree() == before
        else:
            assert ground.execute(changes) == FINISHED
            assert ground.tree() == after
        assert ground.is_tidy()


def is_closed_for(changes: tuple[PathChange, ...], before: Tree) -> bool:
    """Whether something changes in a directory that stays closed to its owner."""
    changed = {change.path for change in changes}
    parents = {path.parent for path in changed if path.parent is not None} - changed
    return any(before[parent.raw].mode & 0o200 == 0 for parent in parents)


@pytest.mark.promise("W1", "W5")
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), before=trees(), after=trees())
def test_where_one_path_is_not_as_expected_nothing_changes(
    quick_path: Path, data: st.DataObject, before: Tree, after: Tree
) -> None:
    with fresh_ground(quick_path) as ground:
        plant(ground.project, before)
        changes = ground.changes(after)
        assume(changes)
        path = data.draw(st.sampled_from(sorted(change.path for change in changes)))
        at = os.path.join(os.fsencode(ground.project), path.raw)
        parent = os.path.dirname(at)
        assume(os.path.isdir(parent) and not os.path.islink(parent) and os.access(parent, os.W_OK))
        if os.path.isdir(at) and not os.path.islink(at):
            os.chmod(at, 0o777)
        else:
            with suppress(FileNotFoundError):
                os.unlink(at)
            os.symlink(b"theirs", at)
        found = ground.tree()
        names = os.listdir(ground.project)

        outcome = ground.execute(changes)

        assert outcome == TransactionOutcome(TransactionResult.UNDONE, KEY, conflicts=(path,))
        assert ground.tree() == found
        assert os.listdir(ground.project) == names
        assert ground.told == []


def test_nothing_to_recover_costs_two_looks_and_changes_nothing(ground: Ground) -> None:
    plant(ground.project, BEFORE)
    found, time = ground.tree(), os.stat(ground.project).st_mtime_ns

    assert ground.recover() is None
    assert ground.tree() == found
    assert os.stat(ground.project).st_mtime_ns == time
    assert ground.told == []


DEAD = 77


def dies_at(moment: int) -> Callable[[int, Step], None]:
    """Die before an act, as if killed: nothing is closed or cleaned up."""

    def meanwhile(count: int, _: Step) -> None:
        if count == moment:
            os._exit(DEAD)

    return meanwhile


def recover_and_die(ground: Ground, moment: int) -> None:
    with ground.open_store() as store:
        marker = read_marker(ground.site)
        nothing = Marker("", TransactionState.UNDONE, ())
        with Executor(
            ground.site, store, marker or nothing, ground.told.append, ignore_progress
        ) as executor:
            drive(publication.recover(marker), executor, dies_at(moment))


def has_gone(
    ground: Ground, outcome: TransactionOutcome | None, before: Tree, after: Tree
) -> TransactionResult:
    """Which way a project went as a whole."""
    assert ground.is_tidy()
    assert ground.recover() is None
    assert outcome is None or (outcome.conflicts, outcome.theirs, outcome.rescued) == ((), (), ())
    tree = ground.tree()
    assert tree in (before, after)
    result = TransactionResult.FINISHED if tree == after else TransactionResult.UNDONE
    assert outcome is None or outcome.result is result
    return result


@pytest.mark.promise("W4")
@pytest.mark.parametrize(
    ("can_exchange", "step"),
    [
        (True, 3),
        (False, 7),
        pytest.param(True, 1, marks=pytest.mark.long),
        pytest.param(False, 1, marks=pytest.mark.long),
    ],
)
def test_killed_before_any_act_it_is_finished_or_undone(
    quick_path: Path, can_exchange: bool, step: int
) -> None:
    ways: list[TransactionResult] = []
    for moment in count(0, step):
        with fresh_ground(quick_path) as ground:
            plant(ground.project, BEFORE)
            changes = ground.changes(AFTER)
            work = partial(ground.drive, changes, dies_at(moment), can_exchange=can_exchange)
            if in_child(work) != DEAD:
                break
            outcome = ground.recover()
            ways.append(has_gone(ground, outcome, BEFORE, AFTER))
            has_marker = outcome is not None and outcome.key != ""
            assert ground.told == [outcome] * has_marker
    assert ways == sorted(ways, key=[TransactionResult.UNDONE, TransactionResult.FINISHED].index), (
        "there is one commit point"
    )
    assert set(ways) == {TransactionResult.UNDONE, TransactionResult.FINISHED}
    assert moment > 100


def kill_twice(quick_path: Path, before: Tree, after: Tree, *, step: int = 1) -> None:
    for first in count(0, step):
        for second in count(0, step):
            with fresh_ground(quick_path) as ground:
                plant(ground.project, before)
                changes = ground.changes(after)
                if in_child(partial(ground.drive, changes, dies_at(first))) != DEAD:
                    return
                ended = in_child(partial(recover_and_die, ground, second))
                has_gone(ground, ground.recover(), before, after)
                if ended != DEAD:
                    break


SMALL = (
    {b"edited": file(b"1"), b"gone": directory(), b"gone/leaf": file(b"2"), b"d": directory(0o755)},
    {b"edited": file(b"one"), b"new": link(b"x"), b"d": directory(0o700)},
)


@pytest.mark.promise("W4")
def test_a_recovery_that_is_killed_too_goes_the_same_way(quick_path: Path) -> None:
    kill_twice(quick_path, *SMALL, step=5)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.promise("W4")
def test_every_recovery_that_is_killed_anywhere_goes_the_same_way(quick_path: Path) -> None:
    kill_twice(quick_path, *SMALL)
    kill_twice(quick_path, BEFORE, AFTER, step=7)


def in_the_past(work: Callable[[], object]) -> Callable[[], object]:
    def done() -> None:
        live_in_the_past()
        work()

    return done


@pytest.mark.promise("W4", "W10")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux takes calls away from a process")
def test_an_old_system_does_the_same_in_more_steps(quick_path: Path) -> None:
    """Without exchanges, without renames that spare what is there, and without safe paths."""
    with fresh_ground(quick_path) as ground:
        plant(ground.project, BEFORE)
        changes = ground.changes(AFTER)

        assert in_child(in_the_past(partial(ground.execute, changes))) == 0
        assert ground.tree() == AFTER
        assert ground.is_tidy()

        assert in_child(in_the_past(partial(ground.execute, ground.changes(BEFORE)))) == 0
        assert ground.tree() == BEFORE


@pytest.mark.promise("W4")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux takes calls away from a process")
def test_where_names_no_longer_change_places_nothing_happens_and_then_all(quick_path: Path) -> None:
    with fresh_ground(quick_path) as ground:
        plant(ground.project, BEFORE)
        changes = ground.changes(AFTER)

        def twice() -> None:
            EXCHANGING.add(ground.project.stat().st_dev)
            with pytest.raises(DiskUnusable):
                ground.execute(changes)
            assert ground.tree() == BEFORE
            ground.execute(changes)

        assert in_child(in_the_past(twice)) == 0
        assert ground.tree() == AFTER


@pytest.mark.promise("W4")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux takes calls away from a process")
def test_killed_on_an_old_system_it_is_finished_or_undone_there(quick_path: Path) -> None:
    ways: set[TransactionResult] = set()
    for moment in count(0, 7):
        with fresh_ground(quick_path) as ground:
            plant(ground.project, BEFORE)
            changes = ground.changes(AFTER)
            work = partial(ground.drive, changes, dies_at(moment), can_exchange=False)
            if in_child(in_the_past(work)) != DEAD:
                break
            assert in_child(in_the_past(ground.recover)) == 0
            ways.add(has_gone(ground, None, BEFORE, AFTER))
    assert ways == {TransactionResult.UNDONE, TransactionResult.FINISHED}


@pytest.mark.promise("W4")
@mounts
@pytest.mark.parametrize("options", ["", "userxattr,"])
def test_in_a_layer_over_a_project_it_is_the_same(tmp_path: Path, options: str) -> None:
    layers = {name: tmp_path / name for name in ("lowerdir", "upperdir", "workdir")}
    for each in layers.values():
        each.mkdir()
    plant(layers["lowerdir"], BEFORE)
    words = options + ",".join(f"{name}={path}" for name, path in layers.items())
    with (
        mounted(tmp_path / "merged", "-t", "overlay", "-o", words, "overlay") as merged,
        fresh_ground(tmp_path) as ground,
    ):
        ground.move_to(merged, flags=os.O_PATH)
        for tree in (AFTER, BEFORE):
            assert ground.execute(ground.changes(tree)) == FINISHED
            assert ground.tree() == tree
        changes = ground.changes(AFTER)
        assert in_child(partial(ground.drive, changes, dies_at(70))) == DEAD
        assert has_gone(ground, ground.recover(), BEFORE, AFTER) is TransactionResult.UNDONE
    assert read(layers["lowerdir"]) == BEFORE


# What the disk refuses


LARGER = {
    **AFTER,
    **{b"large %d" % number: file(bytes([number]) * 9_000) for number in range(6)},
}


@pytest.mark.promise("W1", "W7")
@mounts
@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_on_a_full_disk_nothing_changes_and_with_room_all_of_it(
    tmp_path: Path, quick_path: Path, kind: str
) -> None:
    ways: set[object] = set()
    image = tmp_path / "image"
    if kind == "ext4":
        make_ext4(image, size_bytes=2**20)
    words = ("-o", "loop", image) if kind == "ext4" else ("-t", "tmpfs", "-o", "size=1m", "none")
    with mounted(tmp_path / "small", *map(str, words)) as small, fresh_ground(quick_path) as ground:
        (small / "project").mkdir()
        ground.move_to(small / "project")
        plant(ground.project, BEFORE)
        changes = ground.changes(LARGER)
        for free in range(0, 264, 8):
            fill(small / "filler", leaving=free * 1024)
            try:
                outcome = ground.execute(changes)
            except DiskFull:
                assert ground.tree() == BEFORE
                assert ground.relieved > 0
            else:
                assert outcome == FINISHED
                assert ground.tree() == LARGER
                (small / "filler").unlink()
                back = tuple(PathChange(each.path, each.after, each.before) for each in changes)
                assert ground.execute(back) == FINISHED
            ways.add(ground.told[-1:] == [FINISHED])
            ground.told.clear()
            assert ground.is_tidy()
    assert ways == {True, False}


def fill(filler: Path, *, leaving: int) -> None:
    """Leave no more room than this on a file system."""
    filler.unlink(missing_ok=True)
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    size = filler.stat().st_size
    os.truncate(filler, max(size - leaving, 0))
    os.sync()


@pytest.mark.promise("W7")
@mounts
def test_a_project_that_takes_no_writes_is_left_alone(tmp_path: Path, quick_path: Path) -> None:
    with fresh_ground(quick_path) as ground:
        place = tmp_path / "frozen"
        place.mkdir()
        plant(place, BEFORE)
        with mounted(place, "--bind", str(place)):
            subprocess.run(["mount", "-o", "remount,bind,ro", str(place)], check=True)
            ground.move_to(place)
            with pytest.raises(DiskReadOnly):
                ground.execute(ground.changes(AFTER))
            assert ground.tree() == BEFORE
            assert ground.is_tidy()


@pytest.mark.promise("W1", "W7")
@pytest.mark.skipif(shutil.which("chattr") is None, reason="chattr is missing")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files immutable")
def test_what_may_not_be_moved_stops_all(tmp_path: Path) -> None:
    with fresh_ground(tmp_path) as ground:
        plant(ground.project, BEFORE)
        changes = ground.changes(AFTER)
        for path in (b"edited", b"deleted", b"gone/deep/leaf", b"gone", b"opened"):
            at = os.path.join(os.fsencode(ground.project), path)
            subprocess.run(["chattr", "+i", at], check=True)
            try:
                with pytest.raises(DiskDenied):
                    ground.execute(changes)
            finally:
                subprocess.run(["chattr", "-i", at], check=True)
            assert ground.tree() == BEFORE
            assert ground.is_tidy()
        assert ground.execute(changes) == FINISHED


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_where_we_may_not_write_nothing_changes(quick_path: Path) -> None:
    for closed in (b"", b"d", b"e"):
        with fresh_ground(quick_path) as ground:
            plant(ground.project, {b"d": directory(), b"d/x": file(b"1"), b"e": directory()})
            before = ground.tree()
            changes = ground.changes({b"d": directory(), b"d/x": file(b"2"), b"new": file(b"")})
            at = os.path.join(os.fsencode(ground.project), closed)
            mode = os.stat(at).st_mode
            os.chmod(at, 0o555)
            with suppress(DiskDenied):
                assert ground.execute(changes).conflicts
            os.chmod(at, mode)
            assert ground.tree() == before
            assert ground.is_tidy()


class TroubledDisk(SystemDisk):
    """The disk of this machine, until it has had enough: once, or for good."""

    def __init__(self, patience: int, *, for_good: bool) -> None:
        self.patience = patience
        self._for_good = for_good

    def create(self, path: Path, *, mode: int) -> SystemFile:
        self._bear(path)
        return super().create(path, mode=mode)

    def rename(self, old: Path, new: Path) -> None:
        self._bear(new)
        super().rename(old, new)

    def unlink(self, path: Path) -> None:
        self._bear(path)
        super().unlink(path)

    def sync_directory(self, path: Path) -> None:
        self._bear(path)
        super().sync_directory(path)

    def _bear(self, path: Path) -> None:
        self.patience -= 1
        if self.patience == -1 or (self._for_good and self.patience < 0):
            raise DiskIo(path=str(path), reason="enough")


@pytest.mark.promise("W1", "W4")
@pytest.mark.parametrize("for_good", [False, True])
def test_when_the_marker_cannot_be_written_it_is_all_or_nothing(
    quick_path: Path, for_good: bool
) -> None:
    """The marker is on another disk than the project, and that one fails."""
    ended: list[str] = []
    for patience in count():
        with fresh_ground(quick_path) as ground, ground.open_store() as store:
            plant(ground.project, SMALL[0])
            store.close()
            changes = ground.changes(SMALL[1])
            ground.disk = TroubledDisk(patience, for_good=for_good)
            try:
                outcome = ground.execute(changes)
                assert outcome == replace(FINISHED, is_tidy=outcome.is_tidy)
                ended.append("finished" if outcome.is_tidy else "untidy")
            except (DiskIo, TransactionUnsettled) as failure:
                ended.append(failure.code)
                if isinstance(failure, DiskIo):
                    assert ground.tree() == SMALL[0]
            is_through = ground.disk.patience >= 0
            ground.disk = SystemDisk()
            has_gone(ground, ground.recover(), *SMALL)
            expected = SMALL[1] if ended[-1] in {"finished", "untidy"} else None
            assert expected is None or ground.tree() == expected
            if is_through:
                break
    words = ["DISK_IO", "WORKBENCH_UNSETTLED", "untidy", "finished"]
    assert [each for each in words if each in ended] == words[:: 1 if for_good else 3]


@pytest.mark.promise("W4")
def test_who_cannot_tell_has_finished_all_the_same(quick_path: Path) -> None:
    """What fails after the commit point is left to the next one who opens the project."""
    with fresh_ground(quick_path) as ground:
        plant(ground.project, BEFORE)
        changes = ground.changes(AFTER)

        def record_outcome(_: TransactionOutcome) -> None:
            raise DiskIo(path="events", reason="enough")

        with ground.open_store() as store:
            outcome = execute(
                ground.site, store, changes, purpose=Purpose(KEY), record_outcome=record_outcome
            )

        assert outcome == replace(FINISHED, is_tidy=False)
        assert ground.tree() == AFTER
        assert ground.recover() == FINISHED
        assert ground.told == [FINISHED]
        assert ground.is_tidy()


@pytest.mark.promise("W4")
def test_what_another_left_behind_is_settled_before_anything_begins(quick_path: Path) -> None:
    with fresh_ground(quick_path) as ground:
        plant(ground.project, BEFORE)
        changes = ground.changes(AFTER)
        assert in_child(partial(ground.drive, changes, dies_at(60))) == DEAD
        assert not ground.is_tidy()

        assert ground.execute(changes) == FINISHED
        assert ground.told == [TransactionOutcome(TransactionResult.UNDONE, KEY), FINISHED]
        assert ground.tree() == AFTER


@pytest.mark.promise("W4", "W8")
def test_a_damaged_marker_is_set_aside_and_nothing_is_lost(quick_path: Path) -> None:
    with fresh_ground(quick_path) as ground:
        plant(ground.project, BEFORE)
        changes = ground.changes(AFTER)
        assert in_child(partial(ground.drive, changes, dies_at(60))) == DEAD
        raw = bytearray(ground.site.marker.read_bytes())
        raw[100] ^= 1
        ground.site.marker.write_bytes(raw)
        on_stage = read(ground.project / STAGE)

        with pytest.raises(MarkerDamaged):
            ground.recover()

        assert ground.recover() is None
        assert not (ground.project / STAGE).exists()
        assert [name for name in os.listdir(ground.state) if name.startswith("marker.json.damaged")]
        with ground.open_store() as store:
            kept = [each for each in store.checkpoints() if each.origin == RESCUED]
        assert len(kept) == len(on_stage) > 0


@pytest.mark.promise("W4")
def test_a_marker_of_another_version_is_left_alone(quick_path: Path) -> None:
    with fresh_ground(quick_path) as ground:
        plant(ground.project, BEFORE)
        assert in_child(partial(ground.drive, ground.changes(AFTER), dies_at(60))) == DEAD
        _, body = ground.site.marker.read_bytes().split(b"\n", 1)
        body = body.replace(b'"version":1', b'"version":2')
        head = sha256(body[:-1]).hexdigest().encode()
        ground.site.marker.write_bytes(head + b"\n" + body)
        found = {**ground.tree(), **read(ground.project / STAGE)}

        for _ in range(2):
            with pytest.raises(MarkerForeign):
                ground.recover()
            with pytest.raises(MarkerForeign):
                ground.execute(())
        assert {**ground.tree(), **read(ground.project / STAGE)} == found


@pytest.mark.promise("W10")
@pytest.mark.parametrize("lure", ["link", "directory", "file"])
def test_whatever_has_the_name_of_the_stage_leads_nowhere(
    quick_path: Path, tmp_path: Path, lure: str
) -> None:
    outside = {b"kept": file(b"theirs"), b"0": file(b"theirs")}
    plant(tmp_path, outside)
    with fresh_ground(quick_path) as ground:
        plant(ground.project, BEFORE)
        changes = ground.changes(AFTER)
        stage = ground.project / STAGE
        if lure == "link":
            stage.symlink_to(tmp_path)
        elif lure == "directory":
            stage.mkdir()
            (stage / "0").symlink_to(tmp_path / "kept")
        else:
            stage.write_bytes(b"")

        assert ground.execute(changes) == FINISHED
        assert ground.tree() == AFTER
        assert read(tmp_path) == outside
