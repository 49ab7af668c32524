"""Two trees differ where they differ, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.nouns import RelativePath
from holdfast.workbench.diff.tree_changes import changes, node_at, uncovered_paths
from holdfast.workbench.model import PathChange, PathEntry, UncoveredPath, UncoveredReason
from holdfast.workbench.objects.formats import (
    Node,
    NodeKind,
    ObjectKind,
    directory_detail,
    encode_tree,
    name_of,
    totals_of,
    uncovered,
)

Sketch = dict[bytes, "bytes | UncoveredReason | Sketch"]
"""A tree for tests: what a file holds, why a path is not covered, or what a directory holds."""


class Shelf:
    """Keeps trees in memory, and counts the looks at them."""

    def __init__(self) -> None:
        self.kept: dict[bytes, tuple[Node, ...]] = {}
        self.looks = 0

    def put(self, sketch: Sketch, mtime_ns: int = 0) -> bytes:
        nodes = [self._node(name, held, mtime_ns) for name, held in sorted(sketch.items())]
        name = name_of(ObjectKind.TREE, encode_tree(nodes))
        self.kept[name] = tuple(nodes)
        return name

    def load(self, name: bytes) -> tuple[Node, ...]:
        self.looks += 1
        return self.kept[name]

    def _node(self, name: bytes, held: bytes | UncoveredReason | Sketch, mtime_ns: int) -> Node:
        if isinstance(held, UncoveredReason):
            return uncovered(name, held)
        if isinstance(held, bytes):
            content = name_of(ObjectKind.BLOB, held)
            return Node(name, NodeKind.FILE, 0o644, len(held), mtime_ns, content)
        tree = self.put(held, mtime_ns)
        totals = totals_of(self.kept[tree])
        detail = directory_detail(tree, totals)
        return Node(name, NodeKind.DIRECTORY, 0o755, totals.size, mtime_ns, detail)


def path(text: str) -> RelativePath:
    return RelativePath.of(text)


def at(shelf: Shelf, tree: bytes, text: str) -> PathEntry:
    node = node_at(tree, path(text), shelf.load)
    assert node is not None
    return node.entry()


names = st.sampled_from([b"a", b"b", b"c"])
sketches: st.SearchStrategy[Sketch] = st.recursive(
    st.dictionaries(names, st.sampled_from([b"", b"one", b"two"]), max_size=3),
    lambda inner: st.dictionaries(names, inner | st.sampled_from([b"one", b"two"]), max_size=3),
    max_leaves=9,
)


def test_every_difference_is_named_with_what_was_and_what_is() -> None:
    shelf = Shelf()
    before = shelf.put({b"d": {b"gone": b"1", b"same": b"2"}, b"f": b"old", b"x": {b"y": b"3"}})
    after = shelf.put({b"d": {b"new": b"4", b"same": b"2"}, b"f": b"new", b"x": b"a file now"})

    assert list(changes(before, after, shelf.load)) == [
        PathChange(path("d/gone"), at(shelf, before, "d/gone"), None),
        PathChange(path("d/new"), None, at(shelf, after, "d/new")),
        PathChange(path("f"), at(shelf, before, "f"), at(shelf, after, "f")),
        PathChange(path("x"), at(shelf, before, "x"), at(shelf, after, "x")),
        PathChange(path("x/y"), at(shelf, before, "x/y"), None),
    ]


def test_what_is_only_younger_does_not_differ() -> None:
    shelf = Shelf()
    sketch: Sketch = {b"d": {b"e": {b"f": b"data"}}, b"g": b""}

    assert list(changes(shelf.put(sketch, 1), shelf.put(sketch, 2), shelf.load)) == []


@pytest.mark.promise("W9")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({b"d": UncoveredReason.UNREADABLE}, {b"d": {b"f": b"1"}}),
        ({b"d": {b"f": b"1"}}, {b"d": UncoveredReason.MOUNTED}),
        ({}, {b"p": UncoveredReason.SPECIAL}),
        ({b"p": UncoveredReason.SPECIAL}, {}),
    ],
)
def test_what_is_not_covered_has_not_changed(before: Sketch, after: Sketch) -> None:
    shelf = Shelf()

    assert list(changes(shelf.put(before), shelf.put(after), shelf.load)) == []


def test_only_what_differs_is_looked_at() -> None:
    shelf = Shelf()
    many: Sketch = {b"%d" % number: {b"f": b"%d" % number} for number in range(100)}
    before, after = shelf.put(many), shelf.put({**many, b"7": {b"f": b"changed"}})

    assert [str(change.path) for change in changes(before, after, shelf.load)] == ["7/f"]
    assert shelf.looks == 4


@given(sketches, sketches)
def test_the_changes_lead_from_one_tree_to_the_other(old: Sketch, new: Sketch) -> None:
    shelf = Shelf()
    before, after = shelf.put(old), shelf.put(new)
    entries = _entries(shelf, before)
    found = list(changes(before, after, shelf.load))
    for change in found:
        assert entries.pop(change.path, None) == change.before
        if change.after is not None:
            entries[change.path] = change.after

    assert entries == _entries(shelf, after)
    assert [change.path for change in found] == sorted(change.path for change in found)


@given(
    sketches,
    sketches,
    st.lists(st.sampled_from(["a", "b", "a/b", "b/a", "a/a/b"]), max_size=3, unique=True),
)
def test_near_some_paths_is_what_is_at_below_and_above_them(
    old: Sketch, new: Sketch, texts: list[str]
) -> None:
    shelf = Shelf()
    before, after, only = shelf.put(old), shelf.put(new), [path(text) for text in texts]
    near = [
        each
        for each in changes(before, after, shelf.load)
        if any(each.path.within(one) or one.within(each.path) for one in only)
    ]
    assert list(changes(before, after, shelf.load, only)) == near


def test_every_uncovered_path_is_found_without_a_look_elsewhere() -> None:
    shelf = Shelf()
    tree = shelf.put(
        {
            b"a": {b"deep": {b"pipe": UncoveredReason.SPECIAL}},
            b"b": {b"much": {b"else": b""}},
            b"c": UncoveredReason.POLICY,
        }
    )

    assert list(uncovered_paths(tree, shelf.load)) == [
        UncoveredPath(path("a/deep/pipe"), UncoveredReason.SPECIAL),
        UncoveredPath(path("c"), UncoveredReason.POLICY),
    ]
    assert shelf.looks == 3


def test_what_is_too_long_for_a_path_is_told_by_what_it_is_in() -> None:
    shelf = Shelf()
    sketch: Sketch = {b"n" * 250: UncoveredReason.TOO_DEEP}
    for _ in range(16):
        sketch = {b"n" * 250: sketch}

    assert list(uncovered_paths(shelf.put(sketch), shelf.load)) == [
        UncoveredPath(path("/".join(["n" * 250] * 16)), UncoveredReason.TOO_DEEP)
    ]


@pytest.mark.parametrize("text", ["x", "f/x", "d/x", "d/g/x", "u/x"])
def test_nothing_is_where_nothing_is(text: str) -> None:
    shelf = Shelf()
    tree = shelf.put({b"d": {b"g": b""}, b"f": b"", b"u": UncoveredReason.UNREADABLE})

    assert node_at(tree, path(text), shelf.load) is None


def _entries(shelf: Shelf, tree: bytes) -> dict[RelativePath, PathEntry]:
    empty = shelf.put({})
    found = changes(empty, tree, shelf.load) if tree != empty else ()
    return {change.path: change.after for change in found if change.after is not None}
