"""What is printed is kept at both ends, whatever the pieces are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.runners.bounded_text import BoundedText

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@given(st.lists(st.text(LETTERS, max_size=40), max_size=20))
def test_pieces_make_no_difference(pieces: list[str]) -> None:
    whole = "".join(pieces)
    at_once, bit_by_bit = (BoundedText(head_chars=10, tail_chars=20) for _ in range(2))

    at_once.feed(whole)
    for piece in pieces:
        bit_by_bit.feed(piece)

    left_out = max(0, len(whole) - 30)
    told = f"{whole[:10]}\n… {left_out} characters left out …\n{whole[-20:]}"
    assert bit_by_bit.text == at_once.text == (told if left_out else whole)
    assert bit_by_bit.left_out == at_once.left_out == left_out


def test_memory_is_bounded() -> None:
    printed = BoundedText(head_chars=10, tail_chars=20)
    for _ in range(100_000):
        printed.feed("0123456789")

    assert len(printed.text) < 100
    assert printed.left_out == 1_000_000 - 30
