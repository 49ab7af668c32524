"""A store keeps every checkpoint that it acknowledged, and says what became of the rest."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from holdfast.nouns import RelativePath
from holdfast.workbench.failures import (
    CheckpointCreateFailed,
    CheckpointMissing,
    ObjectDamaged,
    ObjectMissing,
    WorkbenchHeld,
)
from holdfast.workbench.model import Checkpoint, Occasion, TouchedPaths, WorkProgress
from holdfast.workbench.objects.formats import NodeKind, ObjectKind, Totals, name_of
from holdfast.workbench.store.store import RESCUED, CheckpointSource, Ports, Store
from holdfast.world import SystemClock, SystemDisk
from holdfast.world.failures import DiskMissing


def contents(store: Store, checkpoint: Checkpoint, *paths: str) -> dict[str, bytes]:
    """Files of a checkpoint, read back and checked."""
    return {path: _read(store, checkpoint, path) for path in paths}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "state" / "workbench" / "one"


def test_a_checkpoint_holds_what_was_there(home: Path, project: Path) -> None:
    (project / "d").mkdir()
    (project / "d" / "f").write_bytes(b"before")
    with Store.open(home) as store:
        first = store.checkpoint(CheckpointSource(project), Occasion.AUTO, "a first look")
        (project / "d" / "f").write_bytes(b"after, and longer")
        (project / "g").write_bytes(b"new")
        second = store.checkpoint(CheckpointSource(project))

        assert store.checkpoints() == (second, first)
        assert (first.message, first.occasion, first.files, first.size) == (
            "a first look",
            Occasion.AUTO,
            1,
            6,
        )
        assert [str(change.path) for change in store.changes(first, second)] == ["d/f", "g"]
        assert store.changes(first, first) == ()
        assert contents(store, first, "d/f") == {"d/f": b"before"}
        assert contents(store, second, "d/f", "g") == {"d/f": b"after, and longer", "g": b"new"}
        assert store.node(first, RelativePath.of("g")) is None
        assert store.uncovered(second) == ()


def test_it_is_still_there_when_the_store_is_opened_again(home: Path, project: Path) -> None:
    (project / "f").write_bytes(b"data")
    with Store.open(home) as store:
        made = store.checkpoint(CheckpointSource(project))
    with Store.open(home) as store:
        assert store.find(made.id) == made
        assert contents(store, made, "f") == {"f": b"data"}


def test_the_store_itself_survives_a_power_loss(home: Path) -> None:
    synced: list[Path] = []

    class Noting(SystemDisk):
        def sync_directory(self, path: Path) -> None:
            synced.append(path)
            super().sync_directory(path)

    Store.open(home, Ports(disk=Noting())).close()
    made = [home.parent.parent, home.parent, home, home / "seg"]

    assert [path.parent for path in made] == synced
    Store.open(home, Ports(disk=Noting())).close()
    assert len(synced) == len(made)


def test_one_at_a_time(home: Path) -> None:
    with Store.open(home):
        with pytest.raises(WorkbenchHeld) as held:
            Store.open(home)
        assert held.value == WorkbenchHeld(path=str(home))
    Store.open(home).close()


def test_one_who_is_patient_waits_for_the_other(home: Path) -> None:
    first = Store.open(home)
    seen: list[float] = []

    class Watching(SystemClock):
        def monotonic(self) -> float:
            seen.append(super().monotonic())
            if len(seen) == 3:  # it has asked and waited
                first.close()
            return seen[-1]

    Store.open(home, Ports(clock=Watching()), patience=60).close()

    assert len(seen) == 3


def test_patience_has_an_end(home: Path) -> None:
    moments = iter(range(100))

    class Jumping(SystemClock):
        def monotonic(self) -> float:
            return next(moments)

    with Store.open(home), pytest.raises(WorkbenchHeld):
        Store.open(home, Ports(clock=Jumping()), patience=1.5)
    assert next(moments) == 3


def test_a_content_is_kept_however_it_comes(home: Path) -> None:
    large = Random(1).randbytes(9 * 2**20 + 5)
    parts = [large[at : at + 70_000] for at in range(0, len(large), 70_000)]
    with Store.open(home) as store:
        small = store.put_content(iter([b"sm", b"", b"all"]))
        big = store.put_content(parts)
    with Store.open(home) as store:
        assert small == (name_of(ObjectKind.BLOB, b"small"), 5)
        assert b"".join(store.content(small[0])) == b"small"
        assert b"".join(store.content(big[0])) == large
        # what is read may be put back at the same time
        assert store.put_content(store.content(big[0])) == big == (big[0], len(large))


def test_what_stands_at_a_name_is_kept_by_itself(home: Path, project: Path) -> None:
    (project / "d" / "e").mkdir(parents=True)
    (project / "d" / "e" / "f").write_bytes(b"deep")
    (project / "g").write_bytes(b"file")
    root = os.open(project, os.O_RDONLY)
    with Store.open(home) as store:
        nodes = [store.keep(root, name) for name in (b"d", b"g", b"nothing")]
        os.close(root)

        assert [node and (node.name, node.kind, node.totals) for node in nodes] == [
            (b"d", NodeKind.DIRECTORY, Totals(1, 4)),
            (b"g", NodeKind.FILE, Totals(1, 4)),
            None,
        ]
        kept = store.checkpoints()
        assert [(made.origin, made.message) for made in kept] == [(RESCUED, "g"), (RESCUED, "d")]
        assert contents(store, kept[1], "d/e/f") == {"d/e/f": b"deep"}


def test_what_is_like_another_checkpoint_needs_none_of_its_own(home: Path, project: Path) -> None:
    (project / "f").write_bytes(b"f")
    with Store.open(home) as store:
        first = store.checkpoint(CheckpointSource(project))

        assert store.checkpoint(CheckpointSource(project, like=first)) == first
        assert (
            store.partial_checkpoint(first, CheckpointSource(project, like=first), TouchedPaths())
            == first
        )
        (project / "f").write_bytes(b"g")
        second = store.checkpoint(CheckpointSource(project, like=first))

        assert store.checkpoints() == (second, first)


def test_two_checkpoints_are_combined(home: Path, project: Path) -> None:
    for name in ("a", "b"):
        (project / name).write_bytes(b"old")
    with Store.open(home) as store:
        kept = store.checkpoint(CheckpointSource(project))
        for name in ("a", "b"):
            (project / name).write_bytes(b"newer")
        now = store.checkpoint(CheckpointSource(project, "elsewhere"))
        touched = TouchedPaths(frozenset({RelativePath.of("a")}))
        both = store.combine(now, kept, touched, Occasion.MANUAL, "a base")

        assert contents(store, both, "a", "b") == {"a": b"old", "b": b"newer"}
        assert (both.origin, both.message, both.files, both.size) == ("elsewhere", "a base", 2, 8)
        assert store.find(both.id) == both


def test_what_was_seen_becomes_a_checkpoint_when_it_is_kept(home: Path, project: Path) -> None:
    (project / "f").write_bytes(b"seen")
    with Store.open(home) as store:
        seen = store.look(CheckpointSource(project))
        assert store.checkpoints() == ()
        kept = store.record_checkpoint(seen, Occasion.PRE_RESTORE, "why")
        assert store.checkpoints() == (kept,)
        assert (kept.tree, kept.files, kept.occasion, kept.message) == (
            seen.tree,
            seen.files,
            Occasion.PRE_RESTORE,
            "why",
        )
    with Store.open(home) as store:
        node = store.node(kept, RelativePath.of("f"))
        assert node is not None
        assert b"".join(store.content(node.object)) == b"seen"


def test_what_is_done_at_once_is_kept_together_or_not_at_all(home: Path, project: Path) -> None:
    (project / "f").write_bytes(b"first")
    with Store.open(home) as store:
        first = store.checkpoint(CheckpointSource(project))
        (project / "f").write_bytes(b"second")

        def broken() -> None:
            made = store.checkpoint(CheckpointSource(project))
            assert store.find(made.id) == made
            assert store.changes(first, made)
            raise CheckpointMissing(checkpoint="no such one")

        with pytest.raises(CheckpointMissing):
            store.transaction(broken)
        assert store.checkpoints() == (first,)
        both = store.transaction(
            lambda: (
                store.checkpoint(CheckpointSource(project)),
                store.checkpoint(CheckpointSource(project)),
            )
        )
    with Store.open(home) as store:
        assert {*store.checkpoints()} == {first, *both}


@pytest.mark.promise("W3")
def test_what_must_be_kept_first_says_that_it_could_not_be(home: Path, project: Path) -> None:
    nowhere = project / "nowhere"
    with Store.open(home) as store:
        over = store.checkpoint(CheckpointSource(project))
        for occasion in (Occasion.PUBLISH, Occasion.PRE_RESTORE):
            with pytest.raises(CheckpointCreateFailed) as failed:
                store.checkpoint(CheckpointSource(nowhere), occasion)
            assert failed.value.path == str(nowhere)
            assert isinstance(failed.value.__cause__, DiskMissing)
            with pytest.raises(CheckpointCreateFailed):
                store.partial_checkpoint(over, CheckpointSource(nowhere), TouchedPaths(), occasion)


def test_a_long_look_tells_how_far_it_has_come(home: Path, project: Path) -> None:
    for number in range(2500):
        path = project / str(number % 50) / f"f{number}"
        path.parent.mkdir(exist_ok=True)
        path.touch()
    on_progress: list[WorkProgress] = []
    with Store.open(home) as store:
        store.checkpoint(CheckpointSource(project, on_progress=on_progress.append))

    assert [told.done // 1000 for told in on_progress] == [1, 2]


def test_what_is_not_there_is_named(home: Path, project: Path) -> None:
    with Store.open(home) as store:
        with pytest.raises(CheckpointMissing) as missing:
            store.find("cp_x")
        assert missing.value == CheckpointMissing(checkpoint="cp_x")
        with pytest.raises(DiskMissing):
            store.checkpoint(CheckpointSource(project / "nowhere"))
        assert store.checkpoints() == ()


@pytest.mark.promise("W8")
def test_an_index_that_is_lost_or_damaged_is_made_anew(home: Path, project: Path) -> None:
    (project / "f").write_bytes(b"data")
    with Store.open(home) as store:
        made = [store.checkpoint(CheckpointSource(project)) for _ in range(3)]
    for damage in (None, b"", b"no database", os.urandom(20_000)):
        for file in home.glob("wb.db*"):
            file.unlink()
        if damage is not None:
            (home / "wb.db").write_bytes(damage)
        with Store.open(home) as store:
            assert store.checkpoints() == tuple(reversed(made))
            assert contents(store, made[0], "f") == {"f": b"data"}


@pytest.mark.promise("W8")
def test_an_index_that_lags_behind_is_brought_up_to_date(home: Path, project: Path) -> None:
    """The power failed after a checkpoint was synced, and took the last of the index along."""
    (project / "f").write_bytes(b"before")
    with Store.open(home) as store:
        first = store.checkpoint(CheckpointSource(project))
    old = (home / "wb.db").read_bytes()
    (project / "f").write_bytes(b"after, and longer")
    with Store.open(home) as store:
        second = store.checkpoint(CheckpointSource(project))
    (home / "wb.db").write_bytes(old)
    with Store.open(home) as store:
        assert store.checkpoints() == (second, first)
        assert contents(store, second, "f") == {"f": b"after, and longer"}


@pytest.mark.promise("W8")
@pytest.mark.parametrize(
    ("size", "damaged"),
    [(20_000, 1), (12_000, 9)],  # of what is small, so many make a bundle
    ids=["by itself", "in a bundle"],
)
def test_damage_spoils_what_it_hits_and_the_next_checkpoint_mends_it(
    home: Path, project: Path, size: int, damaged: int
) -> None:
    for number in range(20):
        (project / f"f{number}").write_bytes(Random(number).randbytes(size))
    with Store.open(home) as store:
        made = store.checkpoint(CheckpointSource(project))
    segment = home / "seg" / "000001.seg"
    data = bytearray(segment.read_bytes())
    data[5000] ^= 1
    segment.write_bytes(data)
    with Store.open(home) as store:
        readable = {number: _is_readable(store, made, f"f{number}") for number in range(20)}
        assert list(readable.values()).count(False) == damaged

    (home / "wb.db").unlink()
    with Store.open(home) as store:
        again = store.checkpoint(CheckpointSource(project))
        assert all(_is_readable(store, again, f"f{number}") for number in range(20))
        assert all(_is_readable(store, made, f"f{number}") for number in range(20))


@pytest.mark.promise("W8")
@pytest.mark.parametrize("cut", [260, 440, 620])
def test_nothing_is_lost_with_the_end_of_the_index(home: Path, project: Path, cut: int) -> None:
    """Where objects are is found again, and is not written into a table that is spoiled."""
    made: list[Checkpoint] = []
    with Store.open(home) as store:
        for number in range(6):
            (project / f"f{number}").write_bytes(b"%d" % number * 200)
            made.append(store.checkpoint(CheckpointSource(project)))
    index = home / "wb.db"
    os.truncate(index, index.stat().st_size - cut)
    for _ in range(2):
        with Store.open(home) as store:
            assert all(_is_readable(store, each, "f0") for each in made)


def test_a_cut_segment_is_noticed(home: Path, project: Path) -> None:
    for number in range(20):
        (project / f"f{number}").write_bytes(Random(number).randbytes(1000))
    with Store.open(home) as store:
        store.checkpoint(CheckpointSource(project))
    segment = home / "seg" / "000001.seg"
    os.truncate(segment, segment.stat().st_size // 2)
    with Store.open(home) as store:
        again = store.checkpoint(CheckpointSource(project))
        assert all(_is_readable(store, again, f"f{number}") for number in range(20))


_CHILD = """
import os, sys
from pathlib import Path
from holdfast.workbench.store.store import CheckpointSource, Store
home, project, turn = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
with Store.open(home) as store:
    for number in range(10_000):
        (project / f"f{number % 7}").write_bytes(f"{turn} {number}".encode() * 200)
        made = store.checkpoint(CheckpointSource(project), message=f"{turn} {number}")
        os.write(1, made.id.encode() + b"\\n")
"""


@pytest.mark.promise("W4")
def test_no_acknowledged_checkpoint_is_lost_when_the_process_is_killed(
    home: Path, project: Path
) -> None:
    acknowledged: list[str] = []
    for turn in range(5):
        command = [sys.executable, "-c", _CHILD, str(home), str(project), str(turn)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            acknowledged += [child.stdout.readline().decode().strip() for _ in range(3 + turn)]
            child.send_signal(signal.SIGKILL)
            rest = child.stdout.read().decode()
            acknowledged += [line for line in rest.split("\n")[:-1] if line]
        with Store.open(home) as store:
            there: dict[str, Checkpoint] = {made.id: made for made in store.checkpoints()}
            assert set(acknowledged) <= there.keys()
            for id in acknowledged[-3:]:
                made = there[id]
                number = int(made.message.split()[1])
                assert _read(store, made, f"f{number % 7}") == made.message.encode() * 200


def _read(store: Store, checkpoint: Checkpoint, name: str) -> bytes:
    node = store.node(checkpoint, RelativePath.of(name))
    assert node is not None
    return b"".join(store.content(node.object))


def _is_readable(store: Store, checkpoint: Checkpoint, name: str) -> bool:
    try:
        _read(store, checkpoint, name)
    except (ObjectDamaged, ObjectMissing):
        return False
    return True


@pytest.mark.promise("W8")
@pytest.mark.parametrize("spoil", ["id = 'cp_?'", "name = x'00'"])
def test_a_checkpoint_that_the_index_has_lost_is_found_again(
    home: Path, project: Path, spoil: str
) -> None:
    (project / "f").write_bytes(b"f")
    with Store.open(home) as store:
        made = [
            store.checkpoint(CheckpointSource(project), message=word) for word in ("one", "two")
        ]
    with closing(sqlite3.connect(home / "wb.db")) as index, index:
        index.execute(f"UPDATE checkpoints SET {spoil} WHERE id = ?", (made[0].id,))

    with Store.open(home) as store:
        assert store.find(made[0].id) == made[0]
        assert store.checkpoints() == (made[1], made[0])
