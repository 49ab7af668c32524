"""A marker comes back as it was written, or is known to be damaged."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.nouns import RelativePath
from holdfast.workbench.failures import MarkerDamaged, MarkerForeign
from holdfast.workbench.model import EntryKind, PathEntry
from holdfast.workbench.transaction.machine import Marker, PathOperation, TransactionState, Verb
from holdfast.workbench.transaction.marker import decode_marker, encode_marker

ENTRY = PathEntry(EntryKind.FILE, 0o644, bytes(range(32)), b"", ((b"user.x", b"\xff\0"),), 7, 8)
LINK = PathEntry(EntryKind.LINK, 0o777, target=b"\xff/..")
STEP = PathOperation(Verb.SWAP, RelativePath.of(b"d\xff/new\nline"), ENTRY, LINK, 3)
MARKER = Marker("key", TransactionState.PREPARED, (STEP,))

entries = st.none() | st.builds(
    PathEntry,
    st.sampled_from(EntryKind),
    st.integers(0, 0o7777),
    content=st.binary(max_size=32),
    target=st.binary(max_size=8),
    xattrs=st.lists(st.tuples(st.binary(), st.binary()), max_size=2).map(tuple),
    size=st.integers(0, 2**62),
    mtime_ns=st.integers(-(2**62), 2**62),
)
names = st.binary(min_size=1, max_size=20).filter(lambda name: not set(b"\0/.") & set(name))
operations = st.builds(
    PathOperation,
    st.sampled_from(Verb),
    names.map(RelativePath.of),
    entries,
    entries,
    st.integers(0, 2**31),
)


@given(
    st.builds(
        Marker,
        st.text(st.characters(codec="utf-8")),
        st.sampled_from(TransactionState),
        st.lists(operations, max_size=3).map(tuple),
    )
)
def test_a_marker_comes_back_whole(marker: Marker) -> None:
    found = decode_marker(encode_marker(marker))

    assert repr(found) == repr(marker)  # sizes and times are left out of comparisons


@pytest.mark.promise("W4", "W8")
def test_every_flipped_bit_and_every_cut_is_seen() -> None:
    raw = encode_marker(MARKER)
    flipped = (
        raw[:place] + bytes([raw[place] ^ 1 << bit]) + raw[place + 1 :]
        for place in range(len(raw))
        for bit in range(8)
    )
    cut = (raw[:length] for length in range(len(raw)))

    for damaged in [*flipped, *cut, raw + b"\n", raw + raw]:
        with pytest.raises(MarkerDamaged):
            decode_marker(damaged)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{}", "its format is unknown"),
        (b"[", "its format is unknown"),
        (b'{"version":2,"key":"","state":"prepared","operations":[]}', "it is of version 2"),
        (
            b'{"version":1,"key":"","state":"undone","operations":[{"verb":"put","path":"../x",'
            b'"slot":0,"before":null,"after":null}]}',
            "its format is unknown",
        ),
    ],
)
def test_what_another_program_wrote_is_refused(body: bytes, reason: str) -> None:
    with pytest.raises(MarkerForeign) as foreign:
        decode_marker(sha256(body).hexdigest().encode() + b"\n" + body + b"\n")

    assert foreign.value == MarkerForeign(reason=reason)
