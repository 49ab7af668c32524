"""Ids sort by time, then by their chance, and are checked when they come back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.nouns import ENTROPY_BYTES, IdInvalid, check_id, make_id

times = st.integers(0, 2**48 - 1)
entropies = st.binary(min_size=ENTROPY_BYTES, max_size=ENTROPY_BYTES)


@pytest.mark.parametrize(
    ("at_ms", "entropy", "text"),
    [
        (0, bytes(10), "ses_00000000000000000000000000"),
        (2**48 - 1, b"\xff" * 10, "ses_7zzzzzzzzzzzzzzzzzzzzzzzzz"),
        (1, bytes(10), "ses_00000000010000000000000000"),
        (0, bytes(9) + b"\x21", "ses_00000000000000000000000011"),
        (1469922850259, bytes(10), "ses_01arz3ndek0000000000000000"),  # the time of ULID's own
    ],
)
def test_make(at_ms: int, entropy: bytes, text: str) -> None:
    assert make_id("ses", at_ms, entropy) == text


@given(times, entropies, times, entropies)
def test_ids_sort_as_they_were_made(one: int, a: bytes, other: int, b: bytes) -> None:
    assert (make_id("run", one, a) < make_id("run", other, b)) == ((one, a) < (other, b))


@given(times, entropies)
def test_every_id_is_accepted_back(at_ms: int, entropy: bytes) -> None:
    made = make_id("run", at_ms, entropy)

    assert check_id(made, "run") == made


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ses",
        "ses_",
        "run_00000000000000000000000000",
        "ses_0000000000000000000000000",
        "ses_000000000000000000000000000",
        "ses_80000000000000000000000000",
        "ses_0000000000000000000000000i",
        "ses_0000000000000000000000000L",
        "ses_0000000000000000000000000A",
        "ses_0000000000000000000000000\n",
        "ses_00000000000000000000000000\n",
        " ses_00000000000000000000000000",
        "ses_ses_0000000000000000000000",
        "ses_../../../../../etc/passwd0",
    ],
)
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(IdInvalid):
        check_id(text, "ses")


def test_a_refusal_names_the_text_harmlessly() -> None:
    with pytest.raises(IdInvalid) as raised:
        check_id("\x1b", "ses")

    assert raised.value == IdInvalid(id="\\x1b", prefix="ses")


@pytest.mark.parametrize(
    ("prefix", "at_ms", "entropy"),
    [
        ("", 0, bytes(10)),
        ("a_b", 0, bytes(10)),
        ("ses", -1, bytes(10)),
        ("ses", 2**48, bytes(10)),
        ("ses", 0, bytes(9)),
    ],
)
def test_a_wrong_part_is_a_bug(prefix: str, at_ms: int, entropy: bytes) -> None:
    with pytest.raises(AssertionError):
        make_id(prefix, at_ms, entropy)
