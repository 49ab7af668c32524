"""Of whole trees take only what matters: what differs, and the directories above it.

A project may have a hundred thousand files of which three differ. Whoever decides about them needs
the three, in each tree, and to know that what is above them are directories.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from holdfast.nouns import RelativePath
from holdfast.workbench.core.three_way import above_of
from holdfast.workbench.core.tree import Node, NodeSort
from holdfast.workbench.model import Change, Entry, Sort

_SAME_DIRECTORY = Entry(Sort.DIRECTORY, 0o755)  # in all trees the same, whatever it really is
_UNKNOWN = Entry(Sort.SPECIAL, 0)


class Trees(NamedTuple):
    """The base, the project and the draft, each as far as it matters."""

    base: dict[RelativePath, Entry]
    theirs: dict[RelativePath, Entry]
    ours: dict[RelativePath, Entry]


class Three(NamedTuple):
    """What stands at one path in the base, the project and the draft."""

    base: Entry | None
    theirs: Entry | None
    ours: Entry | None


def differing(
    theirs: Iterable[Change],
    ours: Iterable[Change],
    obscured: Mapping[RelativePath, Three] | None = None,
) -> Trees:
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
        found[path] = Three(base, their.after if their else base, our.after if our else base)
    trees = Trees({}, {}, {})
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


def three_of(base: Node | None, theirs: Node | None, ours: Node | None) -> Three | None:
    """What stands at a path that not every tree covers; None if nothing of the project matters.

    What is not covered equals only what is not covered, either: nobody can tell a difference.
    """
    three = Three(*map(known_entry, (base, theirs, ours)))
    is_stray = three.base is None and three.theirs is None  # a socket that only the draft has
    return None if is_stray else three


def known_entry(node: Node | None) -> Entry | None:
    """What stands at a path, with something that nobody can store for what is not covered."""
    if node is None:
        return None
    return _UNKNOWN if node.sort is NodeSort.UNCOVERED else node.entry()
