"""Old checkpoints go, what stays is whole, and nothing that stays is lost by a kill."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from holdfast.nouns import RelativePath
from holdfast.workbench.failures import ObjectDamaged
from holdfast.workbench.model import Checkpoint, Occasion, WorkProgress
from holdfast.workbench.objects.formats import NodeKind, ObjectKind, name_of
from holdfast.workbench.objects.object_store import RESERVE_BYTES
from holdfast.workbench.store.pruning import prune, usage
from holdfast.workbench.store.store import CheckpointSource, Ports, Store
from holdfast.world import SystemClock

FILE_BYTES = 20_000


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "store"


def noise(number: int) -> bytes:
    return Random(number).randbytes(FILE_BYTES)


def fill(store: Store, project: Path, count: int, occasion: Occasion = Occasion.AUTO) -> None:
    """Make checkpoints, each with one file changed."""
    (project / "d").mkdir(exist_ok=True)
    (project / "same").write_bytes(b"never changes")
    for number in range(count):
        (project / "d" / "changing").write_bytes(noise(number))
        store.checkpoint(CheckpointSource(project), occasion, f"{number}")


def check(store: Store, made: Checkpoint) -> None:
    """Read every byte of a checkpoint."""
    _check(store, made, ())


def _check(store: Store, made: Checkpoint, above: tuple[bytes, ...]) -> None:
    tree = made.tree
    if above:
        node = store.node(made, RelativePath(above))
        assert node is not None
        tree = node.object
    for node in store.object_store.read(lambda objects: objects.tree(tree)):
        if node.kind is NodeKind.DIRECTORY:
            _check(store, made, (*above, node.name))
        elif node.kind is NodeKind.FILE:
            assert sum(map(len, store.content(node.object))) == node.size


def messages(store: Store) -> list[str]:
    return [made.message for made in store.checkpoints()]


def test_what_is_too_old_goes_and_its_room_comes_back(home: Path, project: Path) -> None:
    on_progress: list[WorkProgress] = []
    with Store.open(home) as store:
        fill(store, project, 10)
        before = usage(store)
        trial = prune(store, keep_min=3, is_trial=True)
        assert len(messages(store)) == 10
        done = prune(store, keep_min=3, on_progress=on_progress.append)
        after = usage(store)

        assert messages(store) == ["9", "8", "7"]
        assert done.checkpoints == trial.checkpoints
        assert len(done.checkpoints) == 7
        assert (done.bytes_before, done.bytes_after) == (before.kept_bytes, after.kept_bytes)
        assert after.kept_bytes < before.kept_bytes / 2
        assert abs(trial.bytes_after - done.bytes_after) < 1000
        assert (before.checkpoints, after.checkpoints) == (10, 3)
        assert on_progress == [WorkProgress("segments tidied", 1, 1)]
        for made in store.checkpoints():
            check(store, made)
    with Store.open(home) as store:
        assert messages(store) == ["9", "8", "7"]
        (project / "d" / "changing").write_bytes(b"later")
        check(store, store.checkpoint(CheckpointSource(project)))


def test_a_quota_takes_the_oldest_and_leaves_what_is_in_use(home: Path, project: Path) -> None:
    with Store.open(home) as store:
        fill(store, project, 10)
        made = store.checkpoints()
        pruned = prune(store, quota_bytes=4 * FILE_BYTES, in_use=[made[-1].id])

        assert messages(store) == ["9", "8", "0"]
        assert pruned.bytes_after < 4 * FILE_BYTES
        for left in store.checkpoints():
            check(store, left)


def test_small_files_give_their_room_back_one_by_one(home: Path, project: Path) -> None:
    for number in range(30):
        (project / f"f{number}").write_bytes(noise(number)[:3000])
    with Store.open(home) as store:
        store.checkpoint(CheckpointSource(project), Occasion.AUTO)
        for number in range(30):
            if number % 3:
                (project / f"f{number}").write_bytes(b"%d" % number)
        last = store.checkpoint(CheckpointSource(project))
        trial = prune(store, keep_min=1, is_trial=True)
        pruned = prune(store, keep_min=1)

        check(store, last)
        assert pruned.bytes_before - pruned.bytes_after > 20 * 3000
        assert abs(trial.bytes_after - pruned.bytes_after) < 1000  # shares are by length


def test_without_a_reason_nothing_goes(home: Path, project: Path) -> None:
    with Store.open(home) as store:
        fill(store, project, 5)
        size = usage(store).kept_bytes
        assert prune(store, quota_bytes=10**9) == ((), size, size, 0)
        assert len(messages(store)) == 5


def test_what_no_checkpoint_has_goes(home: Path, project: Path) -> None:
    with Store.open(home) as store:
        fill(store, project, 1)
        name, _ = store.put_content([noise(100)])
        assert b"".join(store.content(name)) == noise(100)
        pruned = prune(store)

        assert pruned.checkpoints == ()
        assert pruned.bytes_after < pruned.bytes_before - FILE_BYTES
        check(store, store.checkpoints()[0])


@pytest.mark.promise("W8")
def test_what_went_does_not_come_back_with_a_new_index(home: Path, project: Path) -> None:
    with Store.open(home) as store:
        fill(store, project, 8)
        large = Random(50).randbytes(50 * FILE_BYTES)  # so most of the segment stays in use
        (project / "large").write_bytes(large)
        store.checkpoint(CheckpointSource(project), message="last")
        prune(store, keep_min=2)
        left = messages(store)
        assert left == ["last", "7"]
    for _ in range(2):
        (home / "wb.db").unlink()
        with Store.open(home) as store:
            assert messages(store) == left
            for made in store.checkpoints():
                check(store, made)
            prune(store, quota_bytes=0)
            assert messages(store) == ["last"]
            left = ["last"]


class Later(SystemClock):
    """A clock by which everything has been resting for long."""

    def now(self) -> float:
        return super().now() + 3600


def test_a_look_after_a_pruning_relies_on_nothing_that_went(
    home: Path, project: Path, tmp_path: Path
) -> None:
    """What was last seen of a draft was in a checkpoint that is gone; the draft is still there."""
    draft = tmp_path / "draft"
    (draft / "d").mkdir(parents=True)
    (draft / "d" / "f").write_bytes(noise(1))
    with Store.open(home, Ports(clock=Later())) as store:
        store.checkpoint(CheckpointSource(draft, "draft"))
        store.checkpoint(CheckpointSource(project))
        prune(store, keep_min=1)
        check(store, store.checkpoint(CheckpointSource(draft, "draft")))


def test_a_lagging_index_and_a_segment_that_is_gone(home: Path, project: Path) -> None:
    """The power failed after a segment was taken away, and took the last of the index along."""
    with Store.open(home) as store:
        fill(store, project, 10)
    old = (home / "wb.db").read_bytes()
    with Store.open(home) as store:
        prune(store, keep_min=3)
    (home / "wb.db").write_bytes(old)
    with Store.open(home) as store:
        assert messages(store) == ["9", "8", "7"]
        for made in store.checkpoints():
            check(store, made)


@pytest.mark.promise("W8")
def test_what_is_rotten_is_kept_anew_by_the_next_checkpoint(home: Path, project: Path) -> None:
    with Store.open(home) as store:
        fill(store, project, 2)
        made = store.checkpoints()[0]
        _damage(home, name_of(ObjectKind.BLOB, noise(1)))
        with pytest.raises(ObjectDamaged):
            check(store, made)
        check(store, store.checkpoint(CheckpointSource(project)))
        check(store, made)


@pytest.mark.promise("W8")
def test_a_rotten_directory_is_kept_anew_as_well(home: Path, project: Path) -> None:
    with Store.open(home) as store:
        fill(store, project, 2)
        made = store.checkpoints()[0]
        node = store.node(made, RelativePath.of("d"))
        assert node is not None
        _damage(home, node.object)
        (project / "d" / "more").write_bytes(b"")
        store.checkpoint(CheckpointSource(project))
        (project / "d" / "more").unlink()
        os.utime(project / "d", ns=(node.mtime_ns, node.mtime_ns))
        check(store, store.checkpoint(CheckpointSource(project)))
        check(store, made)


def test_what_is_rotten_is_left_behind_by_a_pruning(home: Path, project: Path) -> None:
    with Store.open(home) as store:
        fill(store, project, 10)
        _damage(home, name_of(ObjectKind.BLOB, noise(9)))
        prune(store, keep_min=2)

        assert messages(store) == ["9", "8"]
        check(store, store.checkpoints()[1])
        check(store, store.checkpoint(CheckpointSource(project)))
        check(store, store.checkpoints()[1])


def _damage(home: Path, name: bytes) -> None:
    """Flip a bit right after the name of an object."""
    (path,) = (home / "seg").iterdir()
    data = bytearray(path.read_bytes())
    at = data.index(name)
    data[at + 40] ^= 1
    path.write_bytes(data)


_CHILD = """
import sys
from pathlib import Path
from holdfast.workbench.store.store import Store
from holdfast.workbench.store.pruning import prune
with Store.open(Path(sys.argv[1])) as store:
    sys.stdout.write("go\\n"); sys.stdout.flush()
    prune(store, keep_min=int(sys.argv[2]))
"""


@pytest.mark.promise("W4")
def test_killed_at_any_system_call_a_pruning_loses_nothing_that_stays(
    home: Path, project: Path
) -> None:
    """A sample: the calls that change something, one after the other, in one store."""
    if shutil.which("strace") is None:
        pytest.skip("there is no strace to kill at a system call")
    with Store.open(home) as store:
        fill(store, project, 30)
    tracer = ["strace", "-f", "-qq", "-o", "/dev/null", "-e"]
    kept, killed = 29, 0
    for call, turn in [
        (call, turn)
        for call in ("write", "fdatasync", "unlink", "fsync", "pwrite64")
        for turn in (1, 2)
    ]:
        kept -= 1
        inject = f"inject={call}:signal=KILL:when={turn}"
        command = [*tracer, inject, sys.executable, "-c", _CHILD, str(home), str(kept)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            child.communicate(timeout=60)
        killed += child.returncode == -signal.SIGKILL
        with Store.open(home) as store:
            left = [int(message) for message in messages(store)]
            assert left[:kept] == list(range(29, 29 - kept, -1)), inject
            for made in store.checkpoints()[:kept]:
                check(store, made)
    assert killed >= 8


def test_usage_tells_of_the_reserve(home: Path) -> None:
    with Store.open(home) as store:
        found = usage(store)

        assert (found.checkpoints, found.kept_bytes, found.reserve_bytes) == (0, 0, RESERVE_BYTES)
        assert 0 < found.quota_bytes <= 20 * 10**9
        assert found.free_bytes > 0
        assert found.index_bytes > 0
