"""Killed anywhere, with a person editing meanwhile: all or nothing, and nothing lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.nouns import RelativePath
from holdfast.workbench.model import PathChange, PathEntry
from holdfast.workbench.transaction.machine import (
    TransactionOutcome,
    TransactionResult,
    plan_operations,
    publish,
    recover,
)
from tests.workbench.modelled import (
    KEY,
    Killed,
    ModelDisk,
    Person,
    at,
    changes,
    directory,
    drive,
    file,
    link,
    reopened,
)

BEFORE: dict[RelativePath, PathEntry] = {
    at("edited"): file("1"),
    at("deleted"): file("2"),
    at("mode"): file("3"),
    at("gone"): directory(0o700),
    at("gone/deep"): directory(),
    at("gone/deep/leaf"): file("1"),
    at("file to directory"): file("4"),
    at("directory to file"): directory(),
    at("directory to file/leaf"): file("5"),
    at("opened"): directory(0o555),
    at("untouched"): file("6"),
}
AFTER: dict[RelativePath, PathEntry] = {
    at("edited"): file("2"),
    at("mode"): file("3", 0o755),
    at("created"): link("edited"),
    at("file to directory"): directory(),
    at("file to directory/leaf"): file("4"),
    at("directory to file"): link("elsewhere"),
    at("opened"): directory(0o755),
    at("opened/leaf"): file("1"),
    at("closed"): directory(0o500),
    at("closed/leaf"): file("7"),
    at("untouched"): file("6"),
}
FINISHED, UNDONE = (
    TransactionOutcome(TransactionResult.FINISHED, KEY),
    TransactionOutcome(TransactionResult.UNDONE, KEY),
)
NOTHING = TransactionOutcome(TransactionResult.NOTHING)
SOME = ("edited", "deleted", "gone", "opened", "file to directory")
TREES = {TransactionResult.FINISHED: AFTER, TransactionResult.UNDONE: BEFORE}
exchanging = pytest.mark.parametrize("can_exchange", [True, False])


def after_of(before: dict[RelativePath, PathEntry]) -> dict[RelativePath, PathEntry]:
    return {path: entry for path, entry in AFTER.items() if before is BEFORE or path in before}


def fresh(
    before: dict[RelativePath, PathEntry] = BEFORE, *, can_exchange: bool = True
) -> ModelDisk:
    wanted = changes(before, after_of(before))
    return ModelDisk.of(before, plan_operations(wanted, can_exchange=can_exchange))


def fallen(
    before: dict[RelativePath, PathEntry], first: Mapping[str, int], *, can_exchange: bool
) -> ModelDisk | None:
    """A disk whose publication was interrupted; None when it was not long enough."""
    disk = fresh(before, can_exchange=can_exchange)
    try:
        drive(publish(disk.operations, KEY), disk, **first)
    except Killed:
        return disk
    return None


def is_over(disk: ModelDisk, outcome: TransactionOutcome) -> bool:
    """Whether nothing is left to tidy up, and opening it once more changes nothing."""
    tree = disk.tree
    return (
        not disk.slots
        and disk.marker is None
        and reopened(disk) == NOTHING
        and disk.tree == tree
        and (outcome == NOTHING or disk.told[-1] == outcome)
    )


def went(disk: ModelDisk, outcome: TransactionOutcome) -> TransactionResult:
    """Which way it went; who is killed at the very end has told so already."""
    if outcome == NOTHING and disk.told:
        return disk.told[-1].result
    return (
        TransactionResult.FINISHED
        if outcome.result is TransactionResult.FINISHED
        else TransactionResult.UNDONE
    )


def interruptions() -> Iterator[dict[str, int]]:
    for moment in range(200):
        yield {"killed_before": moment}
        yield {"torn_at": moment}


@exchanging
def test_a_publication_that_nobody_disturbs_brings_everything(can_exchange: bool) -> None:
    disk = fresh(can_exchange=can_exchange)

    assert drive(publish(disk.operations, KEY), disk) == FINISHED
    assert disk.tree == AFTER
    assert is_over(disk, FINISHED)


@pytest.mark.promise("W4")
@exchanging
def test_killed_at_any_act_it_is_finished_or_undone(can_exchange: bool) -> None:
    ways = set[TransactionResult]()
    for interruption in interruptions():
        disk = fresh(can_exchange=can_exchange)
        try:
            drive(publish(disk.operations, KEY), disk, **interruption)
            break
        except Killed:
            outcome = reopened(disk)
        assert disk.tree == TREES[went(disk, outcome)], interruption
        assert outcome in (FINISHED, UNDONE, NOTHING)
        assert is_over(disk, outcome)
        ways.add(outcome.result)
    else:
        raise AssertionError("there are more acts than were interrupted")
    assert ways == set(TransactionResult)


def kill_twice(before: dict[RelativePath, PathEntry], *, can_exchange: bool) -> None:
    for first in interruptions():
        for second in interruptions():
            disk = fallen(before, first, can_exchange=can_exchange)
            if disk is None:
                return
            try:
                drive(recover(disk.marker), disk, **second)
                break
            except Killed:
                outcome = reopened(disk)
            expected = (
                after_of(before) if went(disk, outcome) is TransactionResult.FINISHED else before
            )
            assert disk.tree == expected, (first, second)
            assert is_over(disk, outcome)


@pytest.mark.promise("W4")
@exchanging
def test_a_recovery_that_is_killed_too_goes_the_same_way(can_exchange: bool) -> None:
    kill_twice({path: BEFORE[path] for path in map(at, SOME)}, can_exchange=can_exchange)


@pytest.mark.long
@pytest.mark.promise("W4")
@exchanging
def test_a_long_recovery_that_is_killed_too_goes_the_same_way(can_exchange: bool) -> None:
    kill_twice(BEFORE, can_exchange=can_exchange)


@pytest.mark.promise("W4")
@exchanging
def test_after_a_power_cut_at_any_act_it_is_finished_or_undone(can_exchange: bool) -> None:
    for moment in range(200):
        for surviving in range(100):
            disk = fresh(can_exchange=can_exchange)
            try:
                drive(publish(disk.operations, KEY), disk, killed_before=moment)
                return
            except Killed:
                states = len(disk.synced)
                disk.power_cut(surviving)
            outcome = reopened(disk)
            assert disk.tree == TREES[went(disk, outcome)], (moment, surviving)
            assert is_over(disk, outcome)
            if surviving >= states:
                break


@pytest.mark.promise("W4")
@exchanging
def test_after_a_power_cut_in_the_recovery_too_it_is_finished_or_undone(can_exchange: bool) -> None:
    before = {path: BEFORE[path] for path in map(at, SOME)}
    for first in interruptions():
        for second in range(200):
            disk = fallen(before, first, can_exchange=can_exchange)
            if disk is None:
                return
            try:
                drive(recover(disk.marker), disk, killed_before=second)
                break
            except Killed:
                disk.power_cut(0)
            outcome = reopened(disk)
            expected = (
                after_of(before) if went(disk, outcome) is TransactionResult.FINISHED else before
            )
            assert disk.tree == expected, (first, second)


def test_what_was_acknowledged_survives_a_power_cut() -> None:
    disk = fresh()
    assert drive(publish(disk.operations, KEY), disk) == FINISHED

    disk.power_cut(0)

    assert reopened(disk) == NOTHING
    assert disk.tree == AFTER


@pytest.mark.promise("W5")
def test_a_project_that_changed_before_is_not_touched_and_every_conflict_is_named() -> None:
    disk = fresh()
    person = Person(disk)
    for path in (at("edited"), at("created"), at("deleted")):
        person.act("save", path)
    found = disk.tree

    outcome = drive(publish(disk.operations, KEY), disk)

    expected = (at("created"), at("deleted"), at("edited"))
    assert outcome == TransactionOutcome(TransactionResult.UNDONE, KEY, conflicts=expected)
    assert disk.tree == found
    assert disk.marker is None
    assert not disk.slots


ONE = at("one")
ENDS = [(file("1"), file("2")), (file("1"), None), (None, file("2")), (file("1"), directory())]
TWICE = [("save", "save"), ("save", "write"), ("save", "delete"), ("write", "save")]
TYPED = [("open", "type"), ("type", "save"), ("save", "type"), ("type", "delete")]


def disturbed(
    disk: ModelDisk, edits: Iterable[tuple[int, str, RelativePath]]
) -> TransactionOutcome:
    """Publish, with a person who edits at these moments and finds all of it afterwards."""
    person, moments = Person(disk), count()

    def meanwhile() -> None:
        now = next(moments)
        for _, deed, path in [edit for edit in edits if edit[0] == now]:
            person.act(deed, path)

    outcome = drive(publish(disk.operations, KEY), disk, meanwhile=meanwhile)
    assert person.nothing_is_lost(), edits
    assert person.what_they_saved_is_there(), edits
    return outcome


@pytest.mark.promise("W1", "W5")
@exchanging
@pytest.mark.parametrize(("before", "after"), ENDS)
@pytest.mark.parametrize("deeds", [*TWICE, *TYPED])
def test_two_edits_at_any_two_moments_are_kept(
    before: PathEntry | None,
    after: PathEntry | None,
    deeds: tuple[str, str],
    can_exchange: bool,
) -> None:
    """Most of the time one of them is a conflict; a rescue is the exception."""
    operations = plan_operations([PathChange(ONE, before, after)], can_exchange=can_exchange)
    tree = {ONE: before} if before else {}
    for first, second in product(range(24), repeat=2):
        edits = [
            (0, "open", ONE),
            (first, deeds[0], ONE),
            (second, deeds[1], ONE),
        ]
        disturbed(ModelDisk.of(tree, operations), edits)


@pytest.mark.promise("W5")
def test_what_they_saved_twice_is_rescued_once_and_told() -> None:
    """The first came out by our exchange; the second is what they see."""
    disk = ModelDisk.of({ONE: file("1")}, plan_operations([PathChange(ONE, file("1"), file("2"))]))

    outcome = disturbed(disk, [(5, "save", ONE), (6, "save", ONE)])

    assert outcome == TransactionOutcome(
        TransactionResult.UNDONE, KEY, conflicts=(ONE,), theirs=(ONE,), rescued=(ONE,)
    )
    assert disk.tree == {ONE: file("person 2")}
    assert disk.store == {file("person 1")}


PATHS = [at(name) for name in ("a", "b", "d", "d/x", "d/y", "e", "e/z")]
DEEDS = ["save", "write", "open", "type", "delete", "mkdir", "chmod"]


@st.composite
def trees(draw: st.DrawFn) -> dict[RelativePath, PathEntry]:
    """Contents repeat across paths and trees, so that likeness proves nothing."""
    tree: dict[RelativePath, PathEntry] = {}
    leaf = st.sampled_from([None, file("1"), file("2"), file("1", 0o755), link("1")])
    for path in PATHS:
        parent = path.parent
        if parent is not None and not (parent in tree and tree[parent].is_directory):
            continue
        nested = path.raw in (b"d", b"e") and draw(st.booleans())
        entry = draw(st.sampled_from([directory(), directory(0o500)])) if nested else draw(leaf)
        if entry is not None:
            tree[path] = entry
    return tree


@pytest.mark.promise("W1", "W4")
@settings(max_examples=250, deadline=None)
@given(st.data(), trees(), trees(), st.booleans())
def test_with_a_person_at_work_each_path_is_base_theirs_or_ours(
    data: st.DataObject,
    before: dict[RelativePath, PathEntry],
    after: dict[RelativePath, PathEntry],
    can_exchange: bool,
) -> None:
    disk = ModelDisk.of(before, plan_operations(changes(before, after), can_exchange=can_exchange))
    person = Person(disk)
    edits = data.draw(
        st.lists(
            st.tuples(st.integers(0, 60), st.sampled_from(DEEDS), st.sampled_from(PATHS)),
            max_size=8,
        )
    )
    moments = iter(range(100_000))

    def meanwhile() -> None:
        now = next(moments)
        for _, deed, path in [edit for edit in edits if edit[0] == now]:
            person.act(deed, path)

    run, deaths = publish(disk.operations, KEY), data.draw(st.lists(st.integers(0, 40), max_size=3))
    outcome = None
    for death in [*deaths, None]:
        try:
            outcome = drive(run, disk, killed_before=death, meanwhile=meanwhile)
            break
        except Killed:
            run = recover(disk.marker)
    assert outcome is not None

    expected = after if went(disk, outcome) is TransactionResult.FINISHED else before
    for path in PATHS:
        allowed = {expected.get(path), *person.wrote.get(path, set())}
        assert disk.look(path) in allowed, (path, outcome, disk.told)
    assert person.nothing_is_lost()
    assert person.what_they_saved_is_there(), (person.last, outcome, disk.told)
    assert disk.marker is None
    assert not disk.slots
    if not person.wrote:
        assert (outcome.conflicts, outcome.theirs, outcome.rescued) == ((), (), ())
