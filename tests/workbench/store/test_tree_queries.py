"""What flows ask of the store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.workbench.diff.tree_changes import ThreeEntries
from holdfast.workbench.failures import CheckpointMissing
from holdfast.workbench.model import EntryKind, PathEntry, TouchedPaths
from holdfast.workbench.store.store import CheckpointSource, Store
from holdfast.workbench.store.tree_queries import (
    BASE,
    combined,
    entries_below,
    find_checkpoint,
    latest,
    store_contents,
    text_of,
    tree_with_entries,
    uncovered_entries,
)
from tests.workbench.modelled import at

UNKNOWN = PathEntry(EntryKind.SPECIAL, 0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def tree(project: Path) -> Path:
    (project / "d" / "e").mkdir(parents=True)
    (project / "d" / "e" / "x").write_bytes(b"x")
    (project / "d" / "y").write_bytes(b"y")
    os.mkfifo(project / "d" / "pipe")
    return project


def test_all_that_is_below_a_path(store: Store, tree: Path) -> None:
    kept = store.checkpoint(CheckpointSource(tree))

    found = entries_below(store, kept, at("d"))

    assert {str(path): entry.kind for path, entry in found.items()} == {
        "d": EntryKind.DIRECTORY,
        "d/e": EntryKind.DIRECTORY,
        "d/e/x": EntryKind.FILE,
        "d/pipe": EntryKind.SPECIAL,
        "d/y": EntryKind.FILE,
    }
    assert entries_below(store, kept, at("nothing")) == {}


def test_a_tree_with_other_entries(store: Store, tree: Path) -> None:
    kept = store.checkpoint(CheckpointSource(tree))
    content, size = store.put_content([b"new"])
    new = PathEntry(EntryKind.FILE, 0o600, content=content, size=size)

    made = tree_with_entries(
        store, kept, {at("d/e/x"): None, at("f/g"): new, at("f"): kept_mode(0o700)}
    )

    assert made.origin == BASE
    assert [(str(one.path), one.after) for one in store.changes(kept, made)] == [
        ("d/e/x", None),
        ("f", kept_mode(0o700)),
        ("f/g", new),
    ]
    back = combined(store, made, kept, [at("d/e/x"), at("f/g"), at("f")])
    assert store.changes(kept, back) == ()


def test_where_nobody_knows(store: Store, tree: Path) -> None:
    base = store.checkpoint(CheckpointSource(tree))
    (tree / "d" / "pipe").unlink()
    (tree / "d" / "pipe").write_bytes(b"a file")
    os.mkfifo(tree / "stray")
    after = store.checkpoint(CheckpointSource(tree))
    node = store.node(after, at("d/pipe"))
    assert node is not None

    assert uncovered_entries(store, base, base, base) == {}
    assert uncovered_entries(store, base, base, after) == {
        at("d/pipe"): ThreeEntries(UNKNOWN, UNKNOWN, node.entry())
    }


def test_the_newest_of_an_origin(store: Store, tree: Path) -> None:
    assert latest(store, "published") is None
    first = store.checkpoint(CheckpointSource(tree))
    store.checkpoint(CheckpointSource(tree, origin="draft"))

    assert latest(store, "published") == first


def test_an_id_or_the_beginning_of_just_one(store: Store, tree: Path) -> None:
    first = store.checkpoint(CheckpointSource(tree))
    second = store.combine(first, first, TouchedPaths())

    assert find_checkpoint(store, first.id) == first
    assert find_checkpoint(store, second.id[:-1]) == second
    for several in ("", "cp", first.id[:5], "nothing"):
        with pytest.raises(CheckpointMissing):
            find_checkpoint(store, several)


def test_several_contents_are_kept_at_once(store: Store) -> None:
    one, other = store_contents(store, [b"one", b"other"])

    assert (one, other) == (store.put_content([b"one"]), store.put_content([b"other"]))
    assert store_contents(store, []) == []


def test_only_what_can_be_read_line_by_line_is_read(store: Store) -> None:
    content, size = store.put_content([b"text"])
    assert text_of(store, PathEntry(EntryKind.FILE, 0, content=content, size=size)) == b"text"
    assert text_of(store, PathEntry(EntryKind.FILE, 0, content=content, size=2**30)) is None
    assert text_of(store, PathEntry(EntryKind.LINK, 0, target=b"x")) is None
    assert text_of(store, None) is None


def kept_mode(mode: int) -> PathEntry:
    """A directory."""
    return PathEntry(EntryKind.DIRECTORY, mode)
