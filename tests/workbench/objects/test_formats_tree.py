"""A directory is written in one way, and read back exactly."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.workbench.model import EntryKind, PathEntry, UncoveredReason
from holdfast.workbench.objects.formats import (
    Node,
    NodeKind,
    Totals,
    decode_tree,
    directory_detail,
    encode_tree,
    totals_of,
    uncovered,
)

ID = bytes(range(32))
FILE = Node(b"a", NodeKind.FILE, 0o644, 5, 77, ID)
LINK = Node(b"b", NodeKind.LINK, 0o777, 0, -3, b"../\xff")
BELOW = Node(b"c", NodeKind.DIRECTORY, 0o755, 9, 1, directory_detail(ID, Totals(2, 9, 1)))
TAGGED = Node(b"d", NodeKind.FILE, 0o600, 0, 0, ID, ((b"user.a", b""), (b"user.b", b"\0x")))
HIDDEN = uncovered(b"e", UncoveredReason.UNREADABLE)

names = st.binary(min_size=1, max_size=12).filter(
    lambda name: name not in {b".", b".."} and not set(name) & {0, ord("/")}
)
nodes = st.builds(
    Node,
    names,
    st.sampled_from(NodeKind),
    st.integers(0, 0o7777),
    st.integers(0, 2**64 - 1),
    st.integers(-(2**63), 2**63 - 1),
    st.binary(max_size=60),
    st.lists(st.tuples(st.binary(max_size=9), st.binary(max_size=9)), max_size=3).map(tuple),
)
directories = st.lists(nodes, max_size=8, unique_by=lambda node: node.name)


@given(directories)
def test_what_was_written_is_read_in_order(directory: list[Node]) -> None:
    assert decode_tree(encode_tree(directory)) == tuple(sorted(directory))


@given(directories, st.randoms())
def test_the_order_makes_no_difference(directory: list[Node], chance: st.randoms) -> None:
    shuffled = list(directory)
    chance.shuffle(shuffled)

    assert encode_tree(shuffled) == encode_tree(directory)


@given(st.binary(max_size=120))
def test_anything_else_is_refused_or_means_itself(data: bytes) -> None:
    with suppress(ValueError):
        assert encode_tree(decode_tree(data)) == data


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "format version"),
        (b"\2", "format version"),
        (encode_tree([FILE])[:-1], "ends in the middle"),
        (encode_tree([FILE])[:9], "ends in the middle"),
        (encode_tree([FILE]) + encode_tree([FILE])[1:], "not in order"),
        (encode_tree([FILE._replace(name=b"..")]), "a name that"),
        (encode_tree([FILE._replace(name=b"a/b")]), "a name that"),
    ],
)
def test_what_is_no_directory_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        decode_tree(data)


def test_counts_go_all_the_way_up() -> None:
    assert totals_of([FILE, LINK, BELOW, TAGGED, HIDDEN]) == Totals(4, 14, 2)
    assert totals_of([]) == Totals(0, 0, 0)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (FILE, PathEntry(EntryKind.FILE, 0o644, content=ID)),
        (LINK, PathEntry(EntryKind.LINK, 0o777, target=b"../\xff")),
        (BELOW, PathEntry(EntryKind.DIRECTORY, 0o755)),
        (TAGGED, PathEntry(EntryKind.FILE, 0o600, content=ID, xattrs=TAGGED.xattrs)),
    ],
)
def test_a_node_is_what_stands_at_its_path(node: Node, expected: PathEntry) -> None:
    assert node.entry() == expected


def test_what_is_not_covered_says_why() -> None:
    assert HIDDEN.reason is UncoveredReason.UNREADABLE
