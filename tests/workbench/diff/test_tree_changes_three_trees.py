"""What is decided about the restricted trees is what is decided about the whole ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.nouns import RelativePath
from holdfast.workbench.diff.three_way import ConflictReason, PathDecision, PathVerdict, decide_all
from holdfast.workbench.diff.tree_changes import (
    ThreeEntries,
    ThreeTrees,
    differing,
    known_entry,
    three_entries,
)
from holdfast.workbench.model import EntryKind, PathChange, PathEntry, UncoveredReason
from holdfast.workbench.objects.formats import Node, NodeKind, uncovered
from tests.workbench.modelled import at, directory, file

A, B = file("a"), file("b")
UNKNOWN = PathEntry(EntryKind.SPECIAL, 0)
FIFO = uncovered(b"x", UncoveredReason.SPECIAL)
FILE = Node(b"x", NodeKind.FILE, 0o644, 1, 0, b"a".ljust(32))
PATHS = [at(name) for name in ("a", "d", "d/x", "d/e", "d/e/y", "d/e/z", "f", "f/g")]

Tree = dict[RelativePath, PathEntry]


def changes_between(before: Tree, after: Tree) -> list[PathChange]:
    return [
        PathChange(path, before.get(path), after.get(path))
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    ]


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    tree: Tree = {}
    for path in PATHS:
        parent = path.parent
        if parent is not None and not (parent in tree and tree[parent].is_directory):
            continue
        entry = draw(st.sampled_from([None, A, B, directory(), directory(), directory()]))
        if entry is not None:
            tree[path] = entry
    return tree


@given(trees(), trees(), trees())
def test_the_same_is_decided(base: Tree, theirs: Tree, ours: Tree) -> None:
    restricted = differing(changes_between(base, theirs), changes_between(base, ours))

    assert decide_all(*restricted) == decide_all(base, theirs, ours)


def test_only_what_differs_and_what_is_above_it_is_looked_at() -> None:
    found = differing([PathChange(at("d/e/y"), A, B)], [PathChange(at("a"), None, A)])

    above = {at("d"): directory(), at("d/e"): directory()}
    assert found == ThreeTrees(
        {**above, at("d/e/y"): A},
        {**above, at("d/e/y"): B},
        {**above, at("d/e/y"): A, at("a"): A},
    )


@pytest.mark.promise("W9")
@pytest.mark.parametrize(
    ("base", "theirs", "ours", "expected"),
    [
        (FIFO, FIFO, FIFO, None),  # nobody touched it
        (FIFO, FIFO, FILE, ConflictReason.NOT_COVERED),  # the draft put something in its place
        (FIFO, FIFO, None, ConflictReason.NOT_COVERED),  # the draft removed it
        (None, FIFO, None, PathVerdict.KEEP_THEIRS),  # a copy never had it
        (FILE, FIFO, FILE, PathVerdict.KEEP_THEIRS),  # the draft knows nothing of it
        (FILE, FILE, FIFO, ConflictReason.NOT_COVERED),  # the draft made it what cannot be kept
        (FIFO, FILE, FILE, PathVerdict.NOTHING),  # it can be read now, by both
    ],
)
def test_what_is_not_covered_is_never_replaced(
    base: Node | None,
    theirs: Node | None,
    ours: Node | None,
    expected: PathVerdict | ConflictReason | None,
) -> None:
    three = three_entries(base, theirs, ours)
    assert three is not None

    decided = decide_all(*differing([], [], {at("x"): three}))

    match expected:
        case ConflictReason():
            assert decided == {at("x"): PathDecision(PathVerdict.CONFLICT, expected)}
        case PathVerdict():
            assert decided == {at("x"): PathDecision(expected)}
        case None:
            assert decided == {}


def test_a_socket_that_only_the_draft_has_stops_nobody() -> None:
    assert three_entries(None, None, FIFO) is None


def test_what_stands_there_as_far_as_anybody_knows() -> None:
    assert (known_entry(None), known_entry(FIFO)) == (None, UNKNOWN)
    assert three_entries(FILE, None, FIFO) == ThreeEntries(FILE.entry(), None, UNKNOWN)
