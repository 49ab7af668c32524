"""A long result is told by its ends, and can be found again."""

from __future__ import annotations

import pytest

from holdfast.agent.text import CHARS_MAX, HEAD, KEPT_MAX, TAIL, kept, receipt


def test_what_is_short_is_told_as_it_is() -> None:
    assert receipt("c1", "x" * CHARS_MAX) == "x" * CHARS_MAX


def test_what_is_long_says_how_to_have_the_rest() -> None:
    text = "a" * HEAD + "b" * CHARS_MAX + "c" * TAIL

    told = receipt("c1", text)

    assert told.startswith("a" * HEAD)
    assert told.endswith("c" * TAIL)
    assert f"{CHARS_MAX} characters left out" in told
    assert f'recall with call "c1" and offset {HEAD}' in told


@pytest.mark.promise("A1")
def test_what_is_endless_is_kept_by_its_ends() -> None:
    assert kept("x" * KEPT_MAX) == "x" * KEPT_MAX
    assert len(kept("x" * (3 * KEPT_MAX))) < KEPT_MAX + 100
