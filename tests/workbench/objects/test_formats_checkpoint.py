"""A checkpoint is read back as it was written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.nouns import make_id
from holdfast.workbench.model import Checkpoint, Occasion
from holdfast.workbench.objects.formats import PREFIX, decode_checkpoint, encode_checkpoint

ONE = Checkpoint(
    id=make_id(PREFIX, 5, bytes(10)),
    at_ms=5,
    occasion=Occasion.MANUAL,
    message="before the rewrite",
    origin="published",
    tree=bytes(range(32)),
    files=1,
    size=2,
    uncovered=3,
)


@given(st.text(), st.sampled_from(Occasion), st.binary(min_size=32, max_size=32))
def test_what_was_written_is_read(message: str, occasion: Occasion, tree: bytes) -> None:
    made = Checkpoint(
        id=ONE.id,
        at_ms=7,
        occasion=occasion,
        message=message,
        origin="draft",
        tree=tree,
        files=0,
        size=0,
        uncovered=0,
    )

    assert decode_checkpoint(encode_checkpoint(made)) == made


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[1]",
        encode_checkpoint(ONE)[:-1],
        encode_checkpoint(ONE).replace(b"cp_", b"xx_"),
        encode_checkpoint(ONE).replace(b"AAEC", b""),
        encode_checkpoint(ONE).replace(b"manual", b"whim"),
    ],
)
def test_what_is_no_checkpoint_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_checkpoint(data)
