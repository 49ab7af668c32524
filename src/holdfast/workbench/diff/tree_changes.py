"""Compare and combine stored trees, and interpret overlay layers. Pure.

Equal subtrees are skipped by their hash, so that a comparison costs what has changed. A path that
either tree does not cover is skipped with all below it: its content is unknown, so it cannot count
as changed.

An upper layer of an overlay holds a whole file for each file written to, a directory for each
directory in which something changed, and a whiteout (character device 0/0) for each removed name. A
directory created in place of a removed one is marked opaque: nothing of the lower directory shows
through.

Decisions about three trees need only the differing paths and the directories above them, so
`differing` restricts trees of a hundred thousand files to the few that matter.
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

_STAGE = STAGE_PREFIX.encode()


@dataclass(slots=True)
class TouchedTree:
    """Prefix tree of touched paths: touched itself, replaced as a whole, or only passed through."""

    is_touched: bool = False
    is_whole: bool = False
    below: dict[bytes, TouchedTree] = field(default_factory=dict[bytes, "TouchedTree"])


def touched_tree(touched: TouchedPaths) -> TouchedTree:
    """Build the prefix tree of touched paths; staging directories are left out."""
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
    """Return these paths and all directories above them, except the root."""
    ways: set[bytes] = set()
    for path in paths:
        while path not in ways:
            ways.add(path)
            path, slash, _ = path.rpartition(b"/")
            if not slash:
                break
    return frozenset(ways)


def is_stage(name: bytes) -> bool:
    """Whether a name directly below a root is a staging directory, which is never covered."""
    return name.startswith(_STAGE)


class LayerEntry(NamedTuple):
    """One entry of a layer; `is_closed` means that the directory could not be listed."""

    path: bytes
    mode: int
    is_opaque: bool = False
    is_closed: bool = False
    stamp: tuple[int, int, int] = (0, 0, 0)  # changes whenever it is written to


class OverlayLayer:
    """Upper layer of an overlay: which paths it decides, and where the lower tree shows."""

    def __init__(self, listed: Iterable[LayerEntry]) -> None:
        self._at = {each.path: each for each in listed}

    def decides(self, path: RelativePath) -> bool:
        """Whether the layer alone determines what is visible at a path.

        A directory that is in both is decided by the layer, but not its contents.
        """
        return path.raw in self._at or any(_hides(self._at.get(above)) for above in _above(path))

    def hides(self, path: RelativePath) -> bool:
        """Whether nothing of the lower tree is visible below a path."""
        return any(_hides(self._at.get(each)) for each in (path.raw, *_above(path)))

    def is_merged(self, path: RelativePath) -> bool:
        """Whether a directory of the layer is merged with one of the project."""
        here = self._at.get(path.raw)
        return here is not None and stat.S_ISDIR(here.mode) and not self.hides(path)


def _above(path: RelativePath) -> Iterator[bytes]:
    raw = path.raw
    while b"/" in raw:
        raw = raw.rpartition(b"/")[0]
        yield raw


def _hides(listed: LayerEntry | None) -> bool:
    return listed is not None and (listed.is_opaque or not stat.S_ISDIR(listed.mode))


def touched(listed: Iterable[LayerEntry]) -> TouchedPaths:
    """Return the paths at which a draft may differ, from the entries of its layer in any order."""
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
    """Return the path, or its nearest ancestor that is short enough for a path."""
    while True:
        try:
            return RelativePath.of(raw)
        except PathInvalid:
            raw = raw.rpartition(b"/")[0]


def _is_whole(each: LayerEntry, path: RelativePath) -> bool:
    """Whether all below must be scanned, too."""
    if len(each.path) > PATH_BYTES_MAX:
        # The scan of its parent reports it as too long.
        return True
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
"""Loads the directory with a hash."""


class _Near(NamedTuple):
    """Restriction of a comparison: at and below `wanted`, and on the way there."""

    wanted: frozenset[tuple[bytes, ...]]
    above: frozenset[tuple[bytes, ...]]


def changes(
    before: bytes | None,
    after: bytes | None,
    load: Load,
    only: Collection[RelativePath] | None = None,
) -> Iterator[PathChange]:
    """Yield every path at which two trees differ, sorted; mtime alone is not a difference.

    With `only`, other paths than these, those below and those above them are skipped.
    """
    yield from _changes(before, after, load, (), None if only is None else _near(only))


def uncovered_paths(tree: bytes, load: Load) -> Iterator[UncoveredPath]:
    """Yield every path that a tree does not cover, sorted.

    Subtrees without any are skipped; a path that is too long is reported by its ancestor.
    """
    yield from _uncovered(tree, load, ())


def node_at(tree: bytes, path: RelativePath, load: Load) -> Node | None:
    """Return the node at a path; None if it does not exist or an ancestor is not covered."""
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
        if was == now:
            # Equal in all fields, hence equal below.
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
"""Stores a directory and returns its hash."""


def combine(
    now: bytes, kept: bytes, ways: TouchedTree, *, load: Load, save: Save
) -> tuple[bytes, Totals]:
    """Return the tree `now`, with touched paths taken from `kept`; costs what was touched.

    A touched directory takes only its own metadata from `kept`. A directory that `now` lacks is
    kept if anything below it is.
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


# A stand-in that is equal in all trees.
_SAME_DIRECTORY = PathEntry(EntryKind.DIRECTORY, 0o755)
_UNKNOWN = PathEntry(EntryKind.SPECIAL, 0)


class ThreeTrees(NamedTuple):
    """Base, project (theirs) and draft (ours), restricted to what differs."""

    base: dict[RelativePath, PathEntry]
    theirs: dict[RelativePath, PathEntry]
    ours: dict[RelativePath, PathEntry]


class ThreeEntries(NamedTuple):
    """Entries at one path in base, project and draft."""

    base: PathEntry | None
    theirs: PathEntry | None
    ours: PathEntry | None


def differing(
    theirs: Iterable[PathChange],
    ours: Iterable[PathChange],
    obscured: Mapping[RelativePath, ThreeEntries] | None = None,
) -> ThreeTrees:
    """Build the three trees from changes against one base, restricted to differing paths.

    `uncovered_entries` supplies entries at paths that a tree does not cover, which changes do not
    include.
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
    """A directory and its ancestors."""
    path = RelativePath(parts)
    yield path
    yield from above_of(path)


def three_entries(base: Node | None, theirs: Node | None, ours: Node | None) -> ThreeEntries | None:
    """Return the entries at a path that not every tree covers; None if only the draft has one.

    Uncovered entries compare equal to each other.
    """
    three = ThreeEntries(*map(known_entry, (base, theirs, ours)))
    # For example a socket made in the draft.
    is_stray = three.base is None and three.theirs is None
    return None if is_stray else three


def known_entry(node: Node | None) -> PathEntry | None:
    """Return the entry of a node, with a SPECIAL entry for an uncovered one."""
    if node is None:
        return None
    return _UNKNOWN if node.kind is NodeKind.UNCOVERED else node.entry()


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
    """Store a tree of only these entries and their directories, for `combine`.

    None entries are absent.
    """
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
