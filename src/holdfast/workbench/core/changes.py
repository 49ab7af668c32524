"""What differs between two kept trees, without a look at what is the same.

What either of them does not cover is passed over, with all that is below it: nobody knows what it
was, so nobody may conclude that it changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from holdfast.nouns import RelativePath
from holdfast.workbench.core.overlay import nearest
from holdfast.workbench.core.tree import Node, NodeSort
from holdfast.workbench.model import Change, Uncovered

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
) -> Iterator[Change]:
    """Every path at which two trees differ, sorted; what is only younger does not differ.

    With `only`, what is neither at these paths, nor below, nor above them is not looked at.
    """
    yield from _changes(before, after, load, (), None if only is None else _near(only))


def uncovered_paths(tree: bytes, load: Load) -> Iterator[Uncovered]:
    """Every path that a tree does not cover, sorted; a look only where there are any.

    One that is too long for a path is told by what it is in.
    """
    yield from _uncovered(tree, load, ())


def node_at(tree: bytes, path: RelativePath, load: Load) -> Node | None:
    """What a tree has at a path; None if nothing, also where it does not cover what is above."""
    found: Node | None = None
    for count, part in enumerate(path.parts):
        if count and (found is None or found.sort is not NodeSort.DIRECTORY):
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
) -> Iterator[Change]:
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
) -> Iterator[Change]:
    if _is_uncovered(old) or _is_uncovered(new):
        return
    was, now = old and old.entry(), new and new.entry()
    if was != now:
        yield Change(RelativePath(parts), was, now)
    inside, outside = _tree(old), _tree(new)
    if inside != outside:
        yield from _changes(inside, outside, load, parts, near)


def _is_uncovered(node: Node | None) -> bool:
    return node is not None and node.sort is NodeSort.UNCOVERED


def _tree(node: Node | None) -> bytes | None:
    return node.object if node is not None and node.sort is NodeSort.DIRECTORY else None


def _uncovered(tree: bytes, load: Load, parts: tuple[bytes, ...]) -> Iterator[Uncovered]:
    for node in load(tree):
        if node.sort is NodeSort.UNCOVERED:
            yield Uncovered(nearest(b"/".join((*parts, node.name))), node.lack)
        elif node.sort is NodeSort.DIRECTORY and node.totals.uncovered:
            yield from _uncovered(node.object, load, (*parts, node.name))
