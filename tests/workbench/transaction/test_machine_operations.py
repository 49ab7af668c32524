"""What is done to the project, and in which order."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.workbench.model import EntryKind, PathChange, PathEntry
from holdfast.workbench.transaction.machine import ACCESS, PathOperation, Verb, plan_operations
from tests.workbench.modelled import at, directory, file, link

OLD, NEW = file("old"), file("new")
OPEN, CLOSED = directory(0o755), directory(0o555)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (OLD, NEW, [(Verb.SWAP, OLD, NEW)]),
        (OLD, file("old", 0o600), [(Verb.SWAP, OLD, file("old", 0o600))]),
        (link("a"), NEW, [(Verb.SWAP, link("a"), NEW)]),
        (None, NEW, [(Verb.PUT, None, NEW)]),
        (None, OPEN, [(Verb.PUT, None, OPEN)]),
        (None, CLOSED, [(Verb.PUT, None, OPEN), (Verb.ADJUST, OPEN, CLOSED)]),
        (OLD, None, [(Verb.TAKE, OLD, None)]),
        (OPEN, None, [(Verb.REMOVE_DIRECTORY, OPEN, None)]),
        (CLOSED, None, [(Verb.ADJUST, CLOSED, OPEN), (Verb.REMOVE_DIRECTORY, OPEN, None)]),
        (OPEN, CLOSED, [(Verb.ADJUST, OPEN, CLOSED)]),
        (OLD, OPEN, [(Verb.TAKE, OLD, None), (Verb.PUT, None, OPEN)]),
        (OPEN, NEW, [(Verb.REMOVE_DIRECTORY, OPEN, None), (Verb.PUT, None, NEW)]),
    ],
)
def test_one_change(
    before: PathEntry | None,
    after: PathEntry | None,
    expected: list[tuple[Verb, PathEntry | None, PathEntry | None]],
) -> None:
    steps = plan_operations([PathChange(at("x"), before, after)])

    assert steps == tuple(
        PathOperation(verb, at("x"), *entries, slot)
        for slot, (verb, *entries) in enumerate(expected)
    )


MARKED = PathEntry(EntryKind.DIRECTORY, 0o755, xattrs=((b"user.a", b"1"),))
CLOSED_ELSE = PathEntry(EntryKind.DIRECTORY, 0o555, xattrs=((b"user.b", b"2"),))
HALF = PathEntry(EntryKind.DIRECTORY, 0o755, xattrs=((b"user.b", b"2"),))
BOTH = replace(HALF, xattrs=(*MARKED.xattrs, *HALF.xattrs))
SHARED = PathEntry(EntryKind.DIRECTORY, 0o1775, xattrs=((ACCESS, b"acl"),))
SHARED_HALF = PathEntry(EntryKind.DIRECTORY, 0o775, xattrs=((ACCESS, b"acl"),))


@pytest.mark.promise("W4")
@pytest.mark.parametrize(
    ("before", "after", "states"),
    [
        (MARKED, OPEN, []),
        (MARKED, CLOSED_ELSE, [OPEN, HALF]),
        (CLOSED_ELSE, MARKED, [HALF, BOTH]),
        (OPEN, SHARED, [SHARED_HALF]),
        (SHARED, OPEN, [directory(0o1775)]),
    ],
)
def test_a_directory_changes_one_thing_at_a_time(
    before: PathEntry, after: PathEntry, states: list[PathEntry]
) -> None:
    steps = plan_operations([PathChange(at("x"), before, after)])

    assert {step.verb for step in steps} == {Verb.ADJUST}
    assert [step.before for step in steps] == [before, *states]
    assert [step.after for step in steps] == [*states, after]


def test_without_exchange_a_file_is_taken_and_another_put() -> None:
    assert plan_operations([PathChange(at("x"), OLD, NEW)], can_exchange=False) == (
        PathOperation(Verb.TAKE, at("x"), OLD, None, 0),
        PathOperation(Verb.PUT, at("x"), None, NEW, 1),
    )


def test_directories_are_emptied_from_below_filled_from_above_and_closed_at_the_end() -> None:
    steps = plan_operations(
        [
            PathChange(at("z"), OPEN, CLOSED),
            PathChange(at("z/new"), None, NEW),
            PathChange(at("new/deep"), None, OPEN),
            PathChange(at("new"), None, CLOSED),
            PathChange(at("old"), OPEN, None),
            PathChange(at("old/deep"), OPEN, None),
            PathChange(at("old/deep/leaf"), OLD, None),
            PathChange(at("a"), CLOSED, OPEN),
            PathChange(at("a/b"), OLD, NEW),
        ]
    )

    assert [(step.verb, str(step.path)) for step in steps] == [
        (Verb.ADJUST, "a"),
        (Verb.SWAP, "a/b"),
        (Verb.TAKE, "old/deep/leaf"),
        (Verb.REMOVE_DIRECTORY, "old/deep"),
        (Verb.REMOVE_DIRECTORY, "old"),
        (Verb.PUT, "new"),
        (Verb.PUT, "new/deep"),
        (Verb.PUT, "z/new"),
        (Verb.ADJUST, "z"),
        (Verb.ADJUST, "new"),
    ]
    assert [step.slot for step in steps] == list(range(len(steps)))


def test_what_cannot_be_stored_is_never_moved() -> None:
    with pytest.raises(AssertionError):
        plan_operations([PathChange(at("x"), PathEntry(EntryKind.SPECIAL, 0o600), None)])
