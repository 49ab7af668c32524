"""Each act does what it promises to real files, whoever else is at work there."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.nouns import RelativePath
from holdfast.workbench.failures import ObjectMissing
from holdfast.workbench.model import EntryKind, PathEntry, WorkProgress
from holdfast.workbench.objects.formats import ObjectKind, name_of
from holdfast.workbench.store.store import Store
from holdfast.workbench.transaction.atomic_rename import NameAt, exchange
from holdfast.workbench.transaction.executor import Executor
from holdfast.workbench.transaction.machine import (
    Apply,
    DropStage,
    InspectPath,
    InspectSlot,
    MakeStage,
    Marker,
    PathAction,
    PathOperation,
    QuickCheckPath,
    Rescue,
    StageEntry,
    Step,
    StepResult,
    SyncAll,
    TransactionOutcome,
    TransactionResult,
    TransactionState,
    Verb,
    WriteMarker,
)
from holdfast.workbench.transaction.path_state import inspect_path
from holdfast.workbench.transaction.site import read_marker
from holdfast.world.failures import DiskDenied
from tests.workbench.grounds import (
    KEY,
    STAGE,
    Ground,
    Thing,
    directory,
    file,
    fork,
    fresh_ground,
    link,
    plant,
    quick_directory,
    read,
)

AT = RelativePath.of("x")


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    with quick_directory(tmp_path) as base, fresh_ground(base) as made:
        yield made


@pytest.fixture
def store(ground: Ground) -> Iterator[Store]:
    with ground.open_store() as open_directory:
        yield open_directory


def hand_for(ground: Ground, store: Store, *operations: PathOperation) -> Executor:
    return Executor(
        ground.site, store, Marker(KEY, TransactionState.PREPARED, operations), ground.told.append
    )


def entry_of(store: Store, data: bytes, mode: int = 0o644) -> PathEntry:
    name, size = store.put_content([data])
    return PathEntry(
        EntryKind.FILE, mode, content=name, size=size, mtime_ns=1_700_000_000_000_000_001
    )


def staged(store: Store, verb: Verb, before: PathEntry | None = None) -> PathOperation:
    return PathOperation(verb, AT, before, entry_of(store, b"new"), 0)


def slots(ground: Ground) -> dict[str, bytes]:
    stage = ground.project / STAGE
    return {each.name: each.read_bytes() for each in stage.iterdir()} if stage.is_dir() else {}


def done(executor: Executor, *acts: Step) -> list[StepResult]:
    with executor:
        return [executor.execute(act) for act in acts]


def test_what_is_staged_is_in_its_slot_as_it_will_be(ground: Ground, store: Store) -> None:
    operation = staged(store, Verb.PUT)

    done(hand_for(ground, store, operation), MakeStage(), StageEntry(operation), SyncAll())

    status = os.stat(ground.project / STAGE / "0")
    assert slots(ground) == {"0": b"new"}
    assert (status.st_mode & 0o7777, status.st_mtime_ns) == (0o644, 1_700_000_000_000_000_001)
    assert os.stat(ground.project / STAGE).st_mode & 0o7777 == 0o700


@pytest.mark.parametrize(
    ("deed", "there", "in_slot", "left_there", "left_in_slot"),
    [
        (PathAction.EXCHANGE, b"old", b"new", b"new", b"old"),
        (PathAction.PUT, None, b"new", b"new", None),
        (PathAction.TAKE, b"old", None, None, b"old"),
    ],
)
def test_a_deed_that_is_possible(
    ground: Ground,
    store: Store,
    deed: PathAction,
    there: bytes | None,
    in_slot: bytes | None,
    left_there: bytes | None,
    left_in_slot: bytes | None,
) -> None:
    assert attempt(ground, store, deed, there, in_slot) is True
    assert there_and_slot(ground) == (left_there, left_in_slot)


@pytest.mark.parametrize(
    ("deed", "there", "in_slot"),
    [
        (PathAction.EXCHANGE, None, b"new"),
        (PathAction.EXCHANGE, b"old", None),
        (PathAction.PUT, b"old", b"new"),
        (PathAction.PUT, None, None),
        (PathAction.TAKE, None, None),
        (PathAction.TAKE, b"old", b"new"),
        (PathAction.REMOVE_DIRECTORY, None, None),
        (PathAction.REMOVE_DIRECTORY, b"old", None),
        (PathAction.REMAKE_DIRECTORY, b"old", None),
        (PathAction.ADJUST, None, None),
        (PathAction.ADJUST, b"old", None),
        (PathAction.READJUST, b"old", None),
    ],
)
def test_a_deed_is_refused_and_nothing_changes(
    ground: Ground, store: Store, deed: PathAction, there: bytes | None, in_slot: bytes | None
) -> None:
    assert attempt(ground, store, deed, there, in_slot) is False
    assert there_and_slot(ground)[0] == there


def attempt(
    ground: Ground, store: Store, deed: PathAction, there: bytes | None, in_slot: bytes | None
) -> StepResult:
    old, new = PathEntry(EntryKind.DIRECTORY, 0o755), PathEntry(EntryKind.DIRECTORY, 0o700)
    operation = PathOperation(Verb.ADJUST, AT, old, new, 0)
    with hand_for(ground, store, operation) as executor:
        executor.execute(MakeStage())
        for data, at in ((there, ground.project / "x"), (in_slot, ground.project / STAGE / "0")):
            if data is not None:
                at.write_bytes(data)
        return executor.execute(Apply(deed, operation))


def there_and_slot(ground: Ground) -> tuple[bytes | None, bytes | None]:
    places = (ground.project / "x", ground.project / STAGE / "0")
    there, slot = (at.read_bytes() if at.is_file() else None for at in places)
    return there, slot


@pytest.mark.promise("W10")
@pytest.mark.parametrize(
    "deed", [PathAction.EXCHANGE, PathAction.PUT, PathAction.TAKE, PathAction.REMOVE_DIRECTORY]
)
def test_a_way_that_has_become_a_link_leads_nowhere(
    ground: Ground, store: Store, deed: PathAction, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_bytes(b"theirs")
    (outside / "empty").mkdir()
    (ground.project / "d").symlink_to(outside)
    new = entry_of(store, b"new")
    for slot, name in enumerate(("d/x", "d/new", "d/empty")):
        operation = PathOperation(Verb.SWAP, RelativePath.of(name), None, new, slot)
        answers = done(
            hand_for(ground, store, operation),
            MakeStage(),
            StageEntry(operation),
            Apply(deed, operation),
        )
        assert answers == [None, None, False]
        assert done(hand_for(ground, store, operation), InspectPath(operation)) == [None]
    assert sorted(os.listdir(outside)) == ["empty", "x"]
    assert (outside / "x").read_bytes() == b"theirs"


def test_a_directory_is_made_again_as_it_was(ground: Ground, store: Store) -> None:
    was = PathEntry(
        EntryKind.DIRECTORY, 0o2711, xattrs=((b"user.a", b"1"),), mtime_ns=1_600_000_000_000_000_007
    )
    operation = PathOperation(Verb.REMOVE_DIRECTORY, AT, was, None, 0)
    (ground.project / STAGE).mkdir()
    (ground.project / STAGE / "0").mkdir()  # by one who was killed

    answers = done(
        hand_for(ground, store, operation),
        Apply(PathAction.REMAKE_DIRECTORY, operation),
        SyncAll(),
        InspectPath(operation),
        Apply(PathAction.REMOVE_DIRECTORY, operation),
    )

    assert answers == [True, None, was, True]
    assert not (ground.project / "x").exists()


@pytest.mark.promise("W5")
def test_a_directory_that_came_out_is_rescued_with_all_that_is_in_it(
    ground: Ground, store: Store
) -> None:
    operation = staged(store, Verb.SWAP, entry_of(store, b"old"))
    plant(
        ground.project,
        {b"x": directory(0o711), b"x/deep": directory(), b"x/deep/leaf": file(b"theirs")},
    )
    with hand_for(ground, store, operation) as executor:
        for act in (
            MakeStage(),
            StageEntry(operation),
            SyncAll(),
            Apply(PathAction.EXCHANGE, operation),
        ):
            executor.execute(act)
        assert executor.execute(InspectSlot(operation)) == PathEntry(EntryKind.DIRECTORY, 0o711)
        executor.execute(Rescue(operation))
        executor.execute(DropStage())

    (kept,) = store.checkpoints()
    leaf = store.node(kept, RelativePath.of("0/deep/leaf"))
    assert leaf is not None
    assert b"".join(store.content(leaf.object)) == b"theirs"
    assert (ground.project / "x").read_bytes() == b"new"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_cannot_be_read_is_not_dropped(ground: Ground, store: Store) -> None:
    operation = staged(store, Verb.SWAP)
    (ground.project / STAGE).mkdir()
    (ground.project / STAGE / "0").touch(mode=0)
    with pytest.raises(DiskDenied):
        done(hand_for(ground, store, operation), Rescue(operation))

    assert (ground.project / STAGE / "0").exists()


def test_a_glance_reads_only_what_does_not_fit(ground: Ground, store: Store) -> None:
    plant(ground.project, {b"a": file(b"old")})
    path = RelativePath.of("a")
    before = inspect_path(ground.site.root, path)
    operation = PathOperation(Verb.SWAP, path, before, before, 0)
    found = ground.project / "a"
    status = found.stat()
    with hand_for(ground, store, operation) as executor:
        assert executor.execute(QuickCheckPath(operation)) == before
        found.write_bytes(b"edited")
        assert (
            executor.execute(QuickCheckPath(operation))
            == inspect_path(ground.site.root, path)
            != before
        )
        found.write_bytes(b"odd")
        os.utime(found, ns=(status.st_mtime_ns, status.st_mtime_ns))
        assert executor.execute(QuickCheckPath(operation)) == before  # what comes out will tell
        assert executor.execute(InspectPath(operation)) != before
        found.unlink()
        assert executor.execute(QuickCheckPath(operation)) is None


@pytest.mark.parametrize("ending", [TransactionState.COMMITTED, TransactionState.UNDONE])
def test_the_marker_is_there_until_it_is_not(
    ground: Ground, store: Store, ending: TransactionState
) -> None:
    found: list[tuple[TransactionState | None, TransactionState | None]] = []
    with hand_for(ground, store) as executor:
        for state in (TransactionState.PREPARED, ending, ending, None, None):
            executor.execute(WriteMarker(state))
            marker = read_marker(ground.site)
            found.append((executor.marked, marker and marker.state))

    states = (TransactionState.PREPARED, ending, ending, None, None)
    assert found == [(state, state) for state in states]
    assert ground.is_tidy()


def test_it_says_how_far_it_has_come(ground: Ground) -> None:
    plant(ground.project, {})
    changes = ground.changes({b"%03d" % number: file(b"") for number in range(201)})
    heard: list[WorkProgress] = []
    ground.execute(changes, on_progress=heard.append)

    assert heard == [
        WorkProgress(what, number, 201) for what in ("stage", "change") for number in (0, 100, 200)
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
def test_what_is_new_belongs_to_whom_the_directory_belongs(ground: Ground) -> None:
    plant(ground.project, {b"theirs": directory(), b"theirs/old": file(b"1"), b"ours": file(b"2")})
    for name, owner in ((b"theirs", 1001), (b"theirs/old", 1002)):
        os.chown(os.fsencode(ground.project) + b"/" + name, owner, owner + 1000)
    after = {
        b"theirs": directory(),
        b"theirs/old": file(b"one"),
        b"theirs/new": directory(),
        b"theirs/new/leaf": file(b"leaf", 0o4755),
        b"theirs/link": link(b"old"),
        b"ours": file(b"two"),
    }

    ground.execute(ground.changes(after))

    assert ground.tree() == after
    owners = {name: os.lstat(os.fsencode(ground.project) + b"/" + name) for name in after}
    assert {name: (status.st_uid, status.st_gid) for name, status in owners.items()} == {
        b"theirs": (1001, 2001),
        b"theirs/old": (1002, 2002),
        b"theirs/new": (1001, 2001),
        b"theirs/new/leaf": (1001, 2001),
        b"theirs/link": (1001, 2001),
        b"ours": (0, 0),
    }


# Somebody else is at work


class Person:
    """Somebody who edits a project between two acts, and must not lose a word."""

    def __init__(self, ground: Ground) -> None:
        self._project = os.fsencode(ground.project)
        self._count = count()
        self.live: dict[bytes, bytes] = {}
        self.last: dict[bytes, bytes] = {}  # what they saw when they looked away
        self.wrote: dict[bytes, set[bytes | None]] = {}

    def act(self, what: str, path: bytes) -> None:
        """Do something, if it is possible as things are."""
        at = os.path.join(self._project, path)
        is_directory = os.path.isdir(at) and not os.path.islink(at)
        with suppress(FileNotFoundError, NotADirectoryError):
            if what == "delete" and not is_directory:
                os.unlink(at)
                self._note(path, None)
            elif what == "save" and not is_directory:
                self._save(at, path)
            elif what == "write" and os.path.isfile(at) and not os.path.islink(at):
                with open(at, "wb") as open_directory:
                    open_directory.write(data := self._fresh())
                self._note(path, data)
            elif what == "become a directory" and not is_directory:
                with suppress(FileNotFoundError):
                    os.unlink(at)
                os.mkdir(at, 0o711)
                self._note(path, None)
                self._save(at + b"/inside", path + b"/inside")

    def _save(self, at: bytes, path: bytes) -> None:
        beside = os.path.join(self._project, b"beside")
        with open(beside, "wb") as open_directory:
            open_directory.write(data := self._fresh())
        try:
            os.rename(beside, at)
        except OSError:
            os.unlink(beside)
            raise
        self._note(path, data)

    def _fresh(self) -> bytes:
        return b"person %d" % next(self._count)

    def _note(self, path: bytes, data: bytes | None) -> None:
        self.wrote.setdefault(path, set()).add(data)
        self.last = {each: was for each, was in self.last.items() if not each.startswith(path)}
        if data is None:
            self.live.pop(path, None)
        else:
            self.live[path] = self.last[path] = data


NAMES = [b"a", b"b", b"d", b"d/x", b"d/y", b"e", b"e/z"]
LEAVES = [None, file(b"1"), file(b"2"), file(b"1", 0o755), link(b"nowhere")]
DEEDS = ["save", "write", "delete", "become a directory"]


@st.composite
def trees(draw: st.DrawFn) -> dict[bytes, Thing]:
    tree: dict[bytes, Thing] = {}
    for path in NAMES:
        parent = path.rpartition(b"/")[0]
        if parent and (parent not in tree or tree[parent].kind != "directory"):
            continue
        directories = [directory(), directory(0o700)] * 2 if path in (b"d", b"e") else []
        thing = draw(st.sampled_from([*LEAVES, *directories]))
        if thing is not None:
            tree[path] = thing
    return tree


edits = st.lists(
    st.tuples(st.integers(0, 50), st.sampled_from(DEEDS), st.sampled_from(NAMES)), max_size=6
)


@pytest.mark.promise("W1", "W4", "W5")
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(before=trees(), after=trees(), edits=edits, can_exchange=st.booleans())
def test_with_a_person_at_work_each_path_is_base_theirs_or_ours(
    tmp_path: Path,
    before: dict[bytes, Thing],
    after: dict[bytes, Thing],
    edits: list[tuple[int, str, bytes]],
    can_exchange: bool,
) -> None:
    with quick_directory(tmp_path) as base, fresh_ground(base) as ground:
        plant(ground.project, before)
        changes = ground.changes(after)
        person = Person(ground)

        def meanwhile(now: int, _: Step) -> None:
            for _, what, path in [edit for edit in edits if edit[0] == now]:
                person.act(what, path)

        outcome = ground.drive(changes, meanwhile, can_exchange=can_exchange)

        expected = after if outcome.result is TransactionResult.FINISHED else before
        tree = ground.tree()
        for path in {*NAMES, *tree}:
            assert is_accounted_for(path, tree.get(path), expected.get(path), person), outcome
        assert {path: tree[path].data for path in person.last} == person.last, outcome
        with ground.open_store() as store:
            for path, data in person.live.items():
                is_there = path in tree and tree[path].data == data
                assert is_there or is_kept(store, data), (path, data, outcome)
                rescued = [each for each in outcome.rescued if RelativePath.of(path).within(each)]
                assert is_there or rescued, (path, outcome)
        assert ground.is_tidy()
        assert bool(person.wrote) or outcome == TransactionOutcome(TransactionResult.FINISHED, KEY)


def is_accounted_for(path: bytes, found: Thing | None, ours: Thing | None, person: Person) -> bool:
    if found == ours or (found.data if found else None) in person.wrote.get(path, ()):
        return True
    above = [path[:at] for at in range(len(path)) if path[at : at + 1] == b"/"]
    if found is None:  # they put something in the place of a directory that it was to be in
        return any(each in person.wrote for each in above)
    return found.kind == "directory" and any(each.startswith(path + b"/") for each in person.wrote)


def is_kept(store: Store, data: bytes) -> bool:
    try:
        return b"".join(store.content(name_of(ObjectKind.BLOB, data))) == data
    except ObjectMissing:
        return False


@pytest.mark.promise("W5")
@pytest.mark.parametrize("can_exchange", [True, False])
def test_what_is_saved_between_two_acts_is_put_back_or_rescued(
    ground: Ground, can_exchange: bool
) -> None:
    """They saved just before our exchange, and again just after it."""
    plant(ground.project, {b"x": file(b"1")})
    changes = ground.changes({b"x": file(b"2")})
    person = Person(ground)

    def meanwhile(_: int, act: Step) -> None:
        if isinstance(act, Apply | InspectSlot) and len(person.wrote.get(b"x", ())) < 2:
            person.act("save", b"x")

    outcome = ground.drive(changes, meanwhile, can_exchange=can_exchange)

    assert (ground.project / "x").read_bytes() == b"person 1"
    assert outcome == TransactionOutcome(
        TransactionResult.UNDONE, KEY, conflicts=(AT,), theirs=(AT,), rescued=(AT,)
    )
    with ground.open_store() as store:
        assert is_kept(store, b"person 0")


@pytest.mark.promise("W5")
@pytest.mark.parametrize("can_exchange", [True, False])
def test_what_is_typed_into_the_old_file_after_all_was_done_is_rescued(
    ground: Ground, can_exchange: bool
) -> None:
    plant(ground.project, {b"x": file(b"1")})
    changes = ground.changes({b"x": file(b"2")})
    typing = os.open(ground.project / "x", os.O_WRONLY)

    def meanwhile(_: int, act: Step) -> None:
        if act == WriteMarker(TransactionState.COMMITTED):
            os.pwrite(typing, b"9", 0)

    outcome = ground.drive(changes, meanwhile, can_exchange=can_exchange)

    os.close(typing)
    assert outcome == TransactionOutcome(TransactionResult.FINISHED, KEY, rescued=(AT,))
    assert (ground.project / "x").read_bytes() == b"2"
    with ground.open_store() as store:
        assert is_kept(store, b"9")


def swap_for_good(project: Path) -> None:
    """Let a directory and a link of another name change places, again and again."""
    here = os.open(project, os.O_RDONLY)
    while True:
        exchange(NameAt(here, b"d"), NameAt(here, b"link"))


THEIRS = {b"deep": directory(0o711), b"x": file(b"theirs"), b"y": file(b"theirs, too")}


@pytest.mark.promise("W10")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges names in one step")
def test_no_race_leads_out_of_the_project(ground: Ground, store: Store, tmp_path: Path) -> None:
    """A parent is a directory now and a link to another place then; 30,000 deeds, no escape."""
    outside = tmp_path / "outside"
    outside.mkdir()
    plant(outside, THEIRS)
    ours = {b"d": directory(), b"d/y": file(b"old"), b"link": link(os.fsencode(outside))}
    plant(ground.project, ours)
    new, old = entry_of(store, b"new"), PathEntry(EntryKind.DIRECTORY, 0o755)
    operations = (
        PathOperation(Verb.PUT, RelativePath.of("d/x"), None, new, 0),
        PathOperation(Verb.SWAP, RelativePath.of("d/y"), None, new, 1),
        PathOperation(
            Verb.ADJUST, RelativePath.of("d/deep"), old, PathEntry(EntryKind.DIRECTORY, 0o700), 2
        ),
    )
    operation_numbers = [
        *(Apply(deed, operations[0]) for deed in (PathAction.PUT, PathAction.TAKE)),
        Apply(PathAction.EXCHANGE, operations[1]),
        Apply(PathAction.REMOVE_DIRECTORY, operations[2]),
        Apply(PathAction.REMAKE_DIRECTORY, operations[2]),
        *(Apply(deed, operations[2]) for deed in (PathAction.ADJUST, PathAction.READJUST)),
        *map(InspectPath, operations),
    ]
    swapper = fork(lambda: swap_for_good(ground.project))
    answers: list[StepResult] = []
    try:
        with hand_for(ground, store, *operations) as executor:
            for act in (MakeStage(), StageEntry(operations[0]), StageEntry(operations[1])):
                executor.execute(act)
            for _ in range(3_000):
                answers += [executor.execute(act) for act in operation_numbers]
    finally:
        os.kill(swapper, signal.SIGKILL)
        os.waitpid(swapper, 0)

    assert len(answers) >= 30_000
    assert {True, False} <= set(answers), "the race was never open"
    assert read(outside) == THEIRS
    contents = {name_of(ObjectKind.BLOB, thing.data) for thing in THEIRS.values() if thing.data}
    seen = [each for each in answers if isinstance(each, PathEntry)]
    assert not [each for each in seen if each.content in contents or each.mode == 0o711]
