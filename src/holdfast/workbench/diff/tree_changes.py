"""What differs between two kept trees, without a look at what is the same.

What either of them does not cover is passed over, with all that is below it: nobody knows what it
was, so nobody may conclude that it changed.

Decide, from what a layer over a project holds, where the draft may differ from it.

A layer holds a whole file for each that was written to, a directory for each that something in it
was changed of, and a device of number 0 for each name that was removed. A directory that was made
where another had been removed is marked: nothing of the old shows through.

Put a tree together from two: as it is now, but as it was wherever something was touched.

What either of the two does not cover is not covered in the result: nobody knows what is there.

Of whole trees take only what matters: what differs, and the directories above it.

A project may have a hundred thousand files of which three differ. Whoever decides about them needs
the three, in each tree, and to know that what is above them are directories.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.nouns import PATH_BYTES_MAX, PathInvalid, RelativePath
from holdfast.workbench.coverage import DEPTH_MAX
from holdfast.workbench.diff.three_way import above_of
from holdfast.workbench.model import (
    STAGE_PREFIX,
    EntryKind,
    PathChange,
    PathEntry,
    TouchedPaths,
    UncoveredPath,
)
from holdfast.workbench.objects.formats import Node, NodeKind, Totals, directory_detail, totals_of

# The way from a root to every path that may have been touched.

_STAGE = STAGE_PREFIX.encode()


@dataclass(slots=True)
class TouchedTree:
    """A name on the way: touched itself, replaced with all below it, or only passed through."""

    is_touched: bool = False
    is_whole: bool = False
    below: dict[bytes, TouchedTree] = field(default_factory=dict[bytes, "TouchedTree"])


def touched_tree(touched: TouchedPaths) -> TouchedTree:
    """The ways to what was touched, from the root; a stage of ours is not among them."""
    root = TouchedTree()
    for path in touched.paths | touched.whole:
        if is_stage(path.parts[0]):
            continue
        way = root
        for part in path.parts:
            way = way.below.setdefault(part, TouchedTree())
        way.is_touched = True
        way.is_whole = way.is_whole or path in touched.whole
    return root


def with_parents(paths: Iterable[bytes]) -> frozenset[bytes]:
    """These paths, and every directory that leads to one of them, except the root."""
    ways: set[bytes] = set()
    for path in paths:
        while path not in ways:
            ways.add(path)
            path, slash, _ = path.rpartition(b"/")
            if not slash:
                break
    return frozenset(ways)


def is_stage(name: bytes) -> bool:
    """Whether a name directly below a root is that of a stage, which nothing ever covers."""
    return name.startswith(_STAGE)


class LayerEntry(NamedTuple):
    """One name in a layer; `is_closed` says of a directory that nobody could look into it."""

    path: bytes
    mode: int
    is_opaque: bool = False
    is_closed: bool = False
    stamp: tuple[int, int, int] = (0, 0, 0)  # changes whenever it is written to


class OverlayLayer:
    """The upper layer of an overlay: where a draft decides itself, and where the project shows."""

    def __init__(self, listed: Iterable[LayerEntry]) -> None:
        self._at = {each.path: each for each in listed}

    def decides(self, path: RelativePath) -> bool:
        """Whether the layer alone decides what is seen at a path; else the project shows through.

        A directory that is in both is decided by the layer, but not what is in it.
        """
        return path.raw in self._at or any(_hides(self._at.get(above)) for above in _above(path))

    def hides(self, path: RelativePath) -> bool:
        """Whether nothing of the project is seen below a path."""
        return any(_hides(self._at.get(each)) for each in (path.raw, *_above(path)))

    def is_merged(self, path: RelativePath) -> bool:
        """Whether a directory of the layer shows what a directory of the project has there, too."""
        here = self._at.get(path.raw)
        return here is not None and stat.S_ISDIR(here.mode) and not self.hides(path)


def _above(path: RelativePath) -> Iterator[bytes]:
    raw = path.raw
    while b"/" in raw:
        raw = raw.rpartition(b"/")[0]
        yield raw


def _hides(listed: LayerEntry | None) -> bool:
    """Whether nothing of the project is seen below it."""
    return listed is not None and (listed.is_opaque or not stat.S_ISDIR(listed.mode))


def touched(listed: Iterable[LayerEntry]) -> TouchedPaths:
    """Where a draft may differ, of all that its layer holds, in any order."""
    paths: dict[bytes, RelativePath] = {}
    whole: dict[bytes, RelativePath] = {}
    for each in listed:
        if is_stage(each.path):
            continue
        path = nearest(each.path)
        (whole if _is_whole(each, path) else paths)[path.raw] = path
    return TouchedPaths(
        frozenset(path for raw, path in paths.items() if not _is_within(raw, whole)),
        frozenset(path for raw, path in whole.items() if not _is_below(raw, whole)),
    )


def nearest(raw: bytes) -> RelativePath:
    """The path itself, or what it is in if it is too long for a path."""
    while True:
        try:
            return RelativePath.of(raw)
        except PathInvalid:
            raw = raw.rpartition(b"/")[0]


def _is_whole(each: LayerEntry, path: RelativePath) -> bool:
    """Whether to look at all that is below, too."""
    if len(each.path) > PATH_BYTES_MAX:
        return True  # whoever looks at what it is in says that it is too long
    is_deepest = len(path.parts) >= DEPTH_MAX
    return stat.S_ISDIR(each.mode) and (each.is_opaque or each.is_closed or is_deepest)


def _is_within(raw: bytes, directories: Mapping[bytes, object]) -> bool:
    return raw in directories or _is_below(raw, directories)


def _is_below(raw: bytes, directories: Mapping[bytes, object]) -> bool:
    while directories and b"/" in raw:
        raw = raw.rpartition(b"/")[0]
        if raw in directories:
            return True
    return False


Load = Callable[[bytes], tuple[Node, ...]]
"""Gives the directory of a name."""


class _Near(NamedTuple):
    """Where somebody wants to know: at these paths and below, and at all that is above them."""

    wanted: frozenset[tuple[bytes, ...]]
    above: frozenset[tuple[bytes, ...]]


def changes(
    before: bytes | None,
    after: bytes | None,
    load: Load,
    only: Collection[RelativePath] | None = None,
) -> Iterator[PathChange]:
    """Every path at which two trees differ, sorted; what is only younger does not differ.

    With `only`, what is neither at these paths, nor below, nor above them is not looked at.
    """
    yield from _changes(before, after, load, (), None if only is None else _near(only))


def uncovered_paths(tree: bytes, load: Load) -> Iterator[UncoveredPath]:
    """Every path that a tree does not cover, sorted; a look only where there are any.

    One that is too long for a path is told by what it is in.
    """
    yield from _uncovered(tree, load, ())


def node_at(tree: bytes, path: RelativePath, load: Load) -> Node | None:
    """What a tree has at a path; None if nothing, also where it does not cover what is above."""
    found: Node | None = None
    for count, part in enumerate(path.parts):
        if count and (found is None or found.kind is not NodeKind.DIRECTORY):
            return None
        nodes = load(tree if found is None else found.object)
        found = next((node for node in nodes if node.name == part), None)
        if found is None:
            return None
    return found


def _near(only: Collection[RelativePath]) -> _Near:
    above = {path.parts[:count] for path in only for count in range(1, len(path.parts))}
    return _Near(frozenset(path.parts for path in only), frozenset(above))


def _changes(
    before: bytes | None,
    after: bytes | None,
    load: Load,
    parts: tuple[bytes, ...],
    near: _Near | None,
) -> Iterator[PathChange]:
    old = {node.name: node for node in load(before)} if before is not None else {}
    new = {node.name: node for node in load(after)} if after is not None else {}
    for name in sorted(old.keys() | new.keys()):
        was, now = old.get(name), new.get(name)
        if was == now:  # also in what nobody compares; so it is below
            continue
        at = (*parts, name)
        if near is None or at in near.wanted:
            yield from _change(was, now, load, at, None)
        elif at in near.above:
            yield from _change(was, now, load, at, near)


def _change(
    old: Node | None,
    new: Node | None,
    load: Load,
    parts: tuple[bytes, ...],
    near: _Near | None,
) -> Iterator[PathChange]:
    if _is_uncovered(old) or _is_uncovered(new):
        return
    was, now = old and old.entry(), new and new.entry()
    if was != now:
        yield PathChange(RelativePath(parts), was, now)
    inside, outside = _tree(old), _tree(new)
    if inside != outside:
        yield from _changes(inside, outside, load, parts, near)


def _is_uncovered(node: Node | None) -> bool:
    return node is not None and node.kind is NodeKind.UNCOVERED


def _tree(node: Node | None) -> bytes | None:
    return node.object if node is not None and node.kind is NodeKind.DIRECTORY else None


def _uncovered(tree: bytes, load: Load, parts: tuple[bytes, ...]) -> Iterator[UncoveredPath]:
    for node in load(tree):
        if node.kind is NodeKind.UNCOVERED:
            yield UncoveredPath(nearest(b"/".join((*parts, node.name))), node.reason)
        elif node.kind is NodeKind.DIRECTORY and node.totals.uncovered:
            yield from _uncovered(node.object, load, (*parts, node.name))


Save = Callable[[Iterable[Node]], bytes]
"""Keeps a directory and gives its name."""


def combine(
    now: bytes, kept: bytes, ways: TouchedTree, *, load: Load, save: Save
) -> tuple[bytes, Totals]:
    """The tree `now`, except at touched paths, where it is as `kept`; costs what was touched.

    A touched directory is as kept by itself, without what is in it. One that is there no more
    stays as kept if anything below it does.
    """
    nodes = _Combination(load, save).nodes(now, kept, ways)
    return save(nodes), totals_of(nodes)


class _Combination:
    def __init__(self, load: Load, save: Save) -> None:
        self._load = load
        self._save = save

    def nodes(self, now: bytes | None, kept: bytes | None, way: TouchedTree) -> list[Node]:
        nodes, old = self._named(now), self._named(kept)
        for name, below in way.below.items():
            node = self._node(nodes.pop(name, None), old.get(name), below)
            if node is not None:
                nodes[name] = node
        return list(nodes.values())

    def _node(self, now: Node | None, kept: Node | None, way: TouchedTree) -> Node | None:
        if way.is_whole or (kept is not None and kept.kind is NodeKind.UNCOVERED):
            return kept
        was_directory = kept is not None and kept.kind is NodeKind.DIRECTORY
        if way.is_touched and not was_directory:
            return kept
        if now is not None and now.kind is NodeKind.UNCOVERED:
            return now
        is_directory = now is not None and now.kind is NodeKind.DIRECTORY
        nodes = self.nodes(
            now.object if now is not None and is_directory else None,
            kept.object if kept is not None and was_directory else None,
            way,
        )
        if not way.is_touched and not is_directory and not nodes:
            return now
        itself = kept if way.is_touched or not is_directory else now
        assert itself is not None
        totals = totals_of(nodes)
        detail = directory_detail(self._save(nodes), totals)
        return itself._replace(size=totals.size, detail=detail)

    def _named(self, tree: bytes | None) -> dict[bytes, Node]:
        return {} if tree is None else {node.name: node for node in self._load(tree)}


_SAME_DIRECTORY = PathEntry(
    EntryKind.DIRECTORY, 0o755
)  # in all trees the same, whatever it really is
_UNKNOWN = PathEntry(EntryKind.SPECIAL, 0)


class ThreeTrees(NamedTuple):
    """The base, the project and the draft, each as far as it matters."""

    base: dict[RelativePath, PathEntry]
    theirs: dict[RelativePath, PathEntry]
    ours: dict[RelativePath, PathEntry]


class ThreeEntries(NamedTuple):
    """What stands at one path in the base, the project and the draft."""

    base: PathEntry | None
    theirs: PathEntry | None
    ours: PathEntry | None


def differing(
    theirs: Iterable[PathChange],
    ours: Iterable[PathChange],
    obscured: Mapping[RelativePath, ThreeEntries] | None = None,
) -> ThreeTrees:
    """The trees that these changes of one base lead to, restricted to where they differ.

    `obscured` is what stands where one of the trees is not covered, of which changes are silent.
    """
    there = {change.path: change for change in theirs}
    here = {change.path: change for change in ours}
    found = dict(obscured or {})
    for path in there.keys() | here.keys():
        their, our = there.get(path), here.get(path)
        base = (their or here[path]).before
        assert not (their and our) or their.before == our.before, f"two bases of {path}"
        found[path] = ThreeEntries(base, their.after if their else base, our.after if our else base)
    trees = ThreeTrees({}, {}, {})
    for path, three in found.items():
        for tree, entry in zip(trees, three, strict=True):
            if entry is not None:
                tree[path] = entry
    homes = {home for path in found if (home := path.parts[:-1])}
    for above in {each for home in homes for each in _way_to(home)} - found.keys():
        for tree in trees:
            tree[above] = _SAME_DIRECTORY
    return trees


def _way_to(parts: tuple[bytes, ...]) -> Iterator[RelativePath]:
    """A directory, and those that it is in."""
    path = RelativePath(parts)
    yield path
    yield from above_of(path)


def three_entries(base: Node | None, theirs: Node | None, ours: Node | None) -> ThreeEntries | None:
    """What stands at a path that not every tree covers; None if nothing of the project matters.

    What is not covered equals only what is not covered, either: nobody can tell a difference.
    """
    three = ThreeEntries(*map(known_entry, (base, theirs, ours)))
    is_stray = three.base is None and three.theirs is None  # a socket that only the draft has
    return None if is_stray else three


def known_entry(node: Node | None) -> PathEntry | None:
    """What stands at a path, with something that nobody can store for what is not covered."""
    if node is None:
        return None
    return _UNKNOWN if node.kind is NodeKind.UNCOVERED else node.entry()


# Spell out single entries as a small tree, so that it can be combined with a whole one.

_KINDS = {
    EntryKind.FILE: NodeKind.FILE,
    EntryKind.DIRECTORY: NodeKind.DIRECTORY,
    EntryKind.LINK: NodeKind.LINK,
}
_ON_THE_WAY = PathEntry(EntryKind.DIRECTORY, 0o755)


@dataclass(slots=True)
class _Place:
    entry: PathEntry | None = None
    below: dict[bytes, _Place] = field(default_factory=lambda: dict[bytes, _Place]())


def small_tree(entries: Mapping[RelativePath, PathEntry | None], save: Save) -> bytes:
    """A tree with these entries and the directories on the way; None stands for nothing there."""
    root = _Place()
    for path, entry in entries.items():
        if entry is None:
            continue
        place = root
        for part in path.parts:
            place = place.below.setdefault(part, _Place())
        place.entry = entry
    return save(_nodes(root, save))


def _nodes(place: _Place, save: Save) -> Iterable[Node]:
    return [_node(name, below, save) for name, below in place.below.items()]


def _node(name: bytes, place: _Place, save: Save) -> Node:
    entry = place.entry or _ON_THE_WAY
    kind, size = _KINDS[entry.kind], entry.size
    detail = entry.target if entry.kind is EntryKind.LINK else entry.content
    if entry.is_directory:
        nodes = list(_nodes(place, save))
        totals = totals_of(nodes)
        size, detail = totals.size, directory_detail(save(nodes), totals)
    return Node(name, kind, entry.mode, size, entry.mtime_ns, detail, entry.xattrs)
