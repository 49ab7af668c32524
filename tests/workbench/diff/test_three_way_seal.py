"""A seal is the same for the same changes, and for no others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.workbench.diff.three_way import seal_of
from holdfast.workbench.model import EntryKind, PathChange, PathEntry
from tests.workbench.modelled import at, directory, file, link

A, B = file("a"), file("b")
CHANGES = (PathChange(at("x"), A, B), PathChange(at("y"), None, A), PathChange(at("z"), B, None))
OTHERS: list[tuple[PathChange, ...]] = [
    (),
    CHANGES[:2],
    (*CHANGES, PathChange(at("d"), None, directory())),
    (*CHANGES[:2], PathChange(at("z"), A, None)),
    (*CHANGES[:2], PathChange(at("Z"), B, None)),
    (*CHANGES[:2], PathChange(at("z"), None, B)),
    (PathChange(at("x"), A, replace(B, mode=0o755)), *CHANGES[1:]),
    (PathChange(at("x"), A, replace(B, xattrs=((b"user.a", b""),))), *CHANGES[1:]),
    (PathChange(at("x"), A, replace(B, xattrs=((b"user.", b"a"),))), *CHANGES[1:]),
    (PathChange(at("x"), A, link("b")), *CHANGES[1:]),
    (PathChange(at("x"), A, link("a")), *CHANGES[1:]),
    (PathChange(at("x/y"), None, A), *CHANGES[2:]),
]


@pytest.mark.promise("W6")
def test_another_change_is_another_seal() -> None:
    seals = {seal_of(changes) for changes in [CHANGES, *OTHERS]}

    assert len(seals) == len(OTHERS) + 1


@pytest.mark.promise("W6")
def test_neither_order_nor_age_is_a_change() -> None:
    younger = [
        PathChange(one.path, one.before, one.after and replace(one.after, mtime_ns=7, size=1))
        for one in reversed(CHANGES)
    ]

    assert seal_of(younger) == seal_of(CHANGES)


entries = st.none() | st.builds(
    PathEntry,
    st.sampled_from([EntryKind.FILE, EntryKind.LINK]),
    st.sampled_from([0o644, 0o755]),
    content=st.sampled_from([b"", b"a", b"aa"]),
    target=st.sampled_from([b"", b"a", b"aa"]),
    xattrs=st.sampled_from([(), ((b"a", b"aa"),), ((b"aa", b"a"),), ((b"a", b""), (b"a", b""))]),
)


@given(entries, entries, entries, entries)
def test_two_changes_of_a_path_have_one_seal_only_if_they_are_one(
    before: PathEntry | None, after: PathEntry | None, old: PathEntry | None, new: PathEntry | None
) -> None:
    if before == after or old == new:
        return
    one, other = PathChange(at("x"), before, after), PathChange(at("x"), old, new)

    assert (seal_of([one]) == seal_of([other])) is (one == other)
