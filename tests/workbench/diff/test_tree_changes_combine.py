"""A combined tree is as kept where something was touched, and as now everywhere else."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.nouns import RelativePath
from holdfast.workbench.diff.tree_changes import combine, touched_tree
from holdfast.workbench.model import TouchedPaths, UncoveredReason
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

Parts = tuple[bytes, ...]
Flat = dict[Parts, tuple[str, int]]
"""A tree as a table: of every path what stands there (f, d or u) and a mode that tells it apart."""


class Shelf:
    """Keeps trees in memory."""

    def __init__(self) -> None:
        self.kept: dict[bytes, tuple[Node, ...]] = {}

    def save(self, nodes: Iterable[Node]) -> bytes:
        held = tuple(sorted(nodes))
        name = name_of(ObjectKind.TREE, encode_tree(held))
        self.kept[name] = held
        return name

    def load(self, name: bytes) -> tuple[Node, ...]:
        return self.kept[name]

    def put(self, flat: Flat, above: Parts = ()) -> bytes:
        here = sorted(path for path in flat if path[:-1] == above)
        return self.save(self._node(flat, path) for path in here)

    def flat(self, tree: bytes, above: Parts = ()) -> Flat:
        found: Flat = {}
        for node in self.load(tree):
            path = (*above, node.name)
            found[path] = (_LETTER[node.kind], node.mode)
            if node.kind is NodeKind.DIRECTORY:
                found |= self.flat(node.object, path)
        return found

    def _node(self, flat: Flat, path: Parts) -> Node:
        kind, mode = flat[path]
        if kind == "u":
            return uncovered(path[-1], UncoveredReason.UNREADABLE)
        if kind == "f":
            content = name_of(ObjectKind.BLOB, b"%d" % mode)
            return Node(path[-1], NodeKind.FILE, mode, 1, 0, content)
        tree = self.put(flat, path)
        totals = totals_of(self.load(tree))
        detail = directory_detail(tree, totals)
        return Node(path[-1], NodeKind.DIRECTORY, mode, totals.size, 0, detail)


_LETTER = {NodeKind.FILE: "f", NodeKind.DIRECTORY: "d", NodeKind.UNCOVERED: "u"}


def combined(now: Flat, kept: Flat, touched: TouchedPaths) -> Flat:
    """What the code makes of it; its totals are those of the tree."""
    shelf = Shelf()
    tree, totals = combine(
        shelf.put(now), shelf.put(kept), touched_tree(touched), load=shelf.load, save=shelf.save
    )
    assert totals == totals_of(shelf.load(tree))
    return shelf.flat(tree)


def expected(now: Flat, kept: Flat, touched: TouchedPaths) -> Flat:
    """What the words say, path by path; nothing is uncovered here."""
    paths = {path.parts for path in touched.paths}
    whole = {path.parts for path in touched.whole}

    def is_kept(path: Parts) -> bool:
        return path in paths or any(path[:count] in whole for count in range(1, len(path) + 1))

    result = {path: found for path, found in now.items() if not is_kept(path)}
    for path in filter(is_kept, kept):
        result[path] = kept[path]
        for count in range(1, len(path)):
            if result.get(path[:count], ("f", 0))[0] != "d":
                result[path[:count]] = kept[path[:count]]
    for path in sorted(result):
        if path[:-1] and result.get(path[:-1], ("f", 0))[0] != "d":
            del result[path]
    return result


def flat(text: str) -> Flat:
    """A table from words such as `d1:a f2:a/b`."""
    words = (word.partition(":") for word in text.split())
    return {RelativePath.of(path).parts: (what[0], int(what[1:])) for what, _, path in words}


def touching(paths: str = "", whole: str = "") -> TouchedPaths:
    return TouchedPaths(
        frozenset(map(RelativePath.of, paths.split())),
        frozenset(map(RelativePath.of, whole.split())),
    )


@pytest.mark.parametrize(
    ("now", "kept", "touched", "result"),
    [
        ("f1:a f2:b", "f3:a f4:b", touching("a"), "f3:a f2:b"),
        ("f1:a", "", touching("a"), ""),
        ("", "f1:a", touching("a"), "f1:a"),
        ("d1:d f1:d/a f1:d/b", "d2:d f2:d/a f2:d/b", touching("d"), "d2:d f1:d/a f1:d/b"),
        ("d1:d f1:d/a f1:d/b", "d2:d f2:d/a f2:d/b", touching("d/a"), "d1:d f2:d/a f1:d/b"),
        ("d1:d f1:d/a f1:d/b", "d2:d f2:d/a", touching(whole="d"), "d2:d f2:d/a"),
        ("", "d2:d f2:d/a f2:d/b", touching("d/a"), "d2:d f2:d/a"),
        ("f1:d", "d2:d f2:d/a", touching("d/a"), "d2:d f2:d/a"),
        ("f1:d", "d2:d", touching("d/a"), "f1:d"),
        ("d1:d f1:d/a", "f2:d", touching("d"), "f2:d"),
        ("d1:d f1:d/a f1:d/b", "f2:d", touching("d/a"), "d1:d f1:d/b"),
        ("d1:d f1:d/a", "u0:d", touching("d/a"), "u0:d"),
        ("u0:d", "d2:d f2:d/a", touching("d d/a"), "u0:d"),
        ("u0:d", "d2:d f2:d/a", touching(whole="d"), "d2:d f2:d/a"),
        ("u0:d", "f2:d", touching("d"), "f2:d"),
    ],
)
def test_what_was_touched_is_as_kept(
    now: str, kept: str, touched: TouchedPaths, result: str
) -> None:
    assert combined(flat(now), flat(kept), touched) == flat(result)


PATHS = [
    tuple(spelled.split(b"/"))
    for spelled in b"a b c a/a a/b b/a b/b a/a/a a/a/b a/b/a b/a/a b/a/b".split()
]


@st.composite
def flats(draw: st.DrawFn) -> Flat:
    found: Flat = {}
    for path in PATHS:
        if path[:-1] and found.get(path[:-1], ("f", 0))[0] != "d":
            continue
        kind = draw(st.sampled_from("-fd"))
        if kind != "-":
            found[path] = (kind, draw(st.integers(0, 2)))
    return found


SOME = st.sets(st.sampled_from(PATHS), max_size=4).map(
    lambda paths: frozenset(RelativePath(path) for path in paths)
)


@given(flats(), flats(), SOME, SOME)
def test_it_is_what_the_words_say_path_by_path(
    now: Flat, kept: Flat, paths: frozenset[RelativePath], whole: frozenset[RelativePath]
) -> None:
    touched = TouchedPaths(paths, whole)

    assert combined(now, kept, touched) == expected(now, kept, touched)
