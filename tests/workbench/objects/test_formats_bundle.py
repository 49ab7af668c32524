"""Files come out of a bundle as they were put in, and what is none is not taken for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.workbench.objects.formats import decode_bundle, encode_bundle, record_shares

FILES = st.dictionaries(st.binary(min_size=32, max_size=32), st.binary(max_size=50), max_size=8)


@given(FILES)
def test_what_was_written_is_read_in_the_same_order(files: dict[bytes, bytes]) -> None:
    assert list(decode_bundle(encode_bundle(files)).items()) == list(files.items())


@given(FILES, st.data())
def test_a_bundle_that_was_cut_or_grew_is_none(
    files: dict[bytes, bytes], draw: st.DataObject
) -> None:
    whole = encode_bundle(files)
    cut = whole[: draw.draw(st.integers(0, len(whole) - 1))]
    for other in (cut, whole + b"\0"):
        with pytest.raises(ValueError, match="bundle"):
            decode_bundle(other)


@given(st.binary(max_size=200))
def test_whatever_else_it_is_it_is_refused_or_read(data: bytes) -> None:
    try:
        files = decode_bundle(data)
    except ValueError:
        return
    assert all(len(name) == 32 for name in files)


@given(st.lists(st.integers(0, 12_000), min_size=1, max_size=50), st.integers(64, 200_000))
def test_all_of_a_record_is_shared_out(lengths: list[int], record_bytes: int) -> None:
    shares = record_shares(lengths, record_bytes)

    assert sum(shares) == record_bytes
    assert all(share >= 0 for share in shares)


def test_what_is_longer_takes_more() -> None:
    assert record_shares([0, 64, 164], 336) == [36, 100, 200]
