"""Single entries as a small tree."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.workbench.diff.tree_changes import node_at, small_tree
from holdfast.workbench.model import EntryKind, PathEntry
from holdfast.workbench.objects.formats import Node, ObjectKind, decode_tree, encode_tree, name_of
from tests.workbench.modelled import at

FILE = PathEntry(
    EntryKind.FILE, 0o600, content=b"c" * 32, xattrs=((b"user.a", b"1"),), size=7, mtime_ns=5
)
LINK = PathEntry(EntryKind.LINK, 0o777, target=b"../x")
DIRECTORY = PathEntry(EntryKind.DIRECTORY, 0o700, mtime_ns=3)


def test_every_entry_is_where_it_belongs() -> None:
    kept: dict[bytes, bytes] = {}

    def save(nodes: Iterable[Node]) -> bytes:
        data = encode_tree(nodes)
        name = name_of(ObjectKind.TREE, data)
        kept[name] = data
        return name

    entries = {
        at("d/e/f"): FILE,
        at("d/l"): LINK,
        at("g"): DIRECTORY,
        at("g/x"): FILE,
        at("gone"): None,
    }
    tree = small_tree(entries, save)

    for path, entry in entries.items():
        node = node_at(tree, path, lambda name: decode_tree(kept[name]))
        assert (None if node is None else node.entry()) == entry
        if node is not None and entry is not None:
            assert node.mtime_ns == entry.mtime_ns
    node = node_at(tree, at("d"), lambda name: decode_tree(kept[name]))
    assert node is not None
    assert (node.totals.files, node.totals.size) == (1, 7)
