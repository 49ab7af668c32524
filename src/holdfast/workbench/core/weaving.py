"""Spell out single entries as a small tree, so that it can be combined with a whole one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from holdfast.nouns import RelativePath
from holdfast.workbench.core.combining import Save
from holdfast.workbench.core.tree import Node, NodeSort, directory_detail, totals_of
from holdfast.workbench.model import Entry, Sort

_SORTS = {Sort.FILE: NodeSort.FILE, Sort.DIRECTORY: NodeSort.DIRECTORY, Sort.LINK: NodeSort.LINK}
_ON_THE_WAY = Entry(Sort.DIRECTORY, 0o755)


@dataclass(slots=True)
class _Place:
    entry: Entry | None = None
    below: dict[bytes, _Place] = field(default_factory=lambda: dict[bytes, _Place]())


def small_tree(entries: Mapping[RelativePath, Entry | None], save: Save) -> bytes:
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
    sort, size = _SORTS[entry.sort], entry.size
    detail = entry.target if entry.sort is Sort.LINK else entry.content
    if entry.is_directory:
        nodes = list(_nodes(place, save))
        totals = totals_of(nodes)
        size, detail = totals.size, directory_detail(save(nodes), totals)
    return Node(name, sort, entry.mode, size, entry.mtime_ns, detail, entry.xattrs)
