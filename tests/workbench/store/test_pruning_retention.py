"""Which checkpoints go first, and which never."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.nouns import Id
from holdfast.workbench.model import Checkpoint, Occasion
from holdfast.workbench.store.pruning import KEEP_MIN, prune_order, surplus

LETTERS = {
    "a": Occasion.AUTO,
    "m": Occasion.MANUAL,
    "p": Occasion.PUBLISH,
    "r": Occasion.PRE_RESTORE,
}


def made(letters: str) -> list[Checkpoint]:
    """A checkpoint for each letter, a second apart; its id is its place."""
    return [
        Checkpoint(
            id=Id(f"{place:05}"),
            at_ms=place * 1000,
            occasion=LETTERS[letter],
            message="",
            origin="",
            tree=b"",
            files=0,
            size=0,
            uncovered=0,
        )
        for place, letter in enumerate(letters)
    ]


@pytest.mark.parametrize(
    ("letters", "in_use", "expected"),
    [
        ("", [], []),
        ("a", [], []),
        ("aaa", [], [0, 1]),
        ("maam", [], [1, 2]),
        ("pprra", [], [0, 2]),
        ("parma", [], [1]),
        ("aaaa", [1], [0, 2]),
        ("ppmaa", [], [3, 0]),
    ],
)
def test_prune_order(letters: str, in_use: list[int], expected: list[int]) -> None:
    used = [Id(f"{place:05}") for place in in_use]

    assert list(prune_order(made(letters), in_use=used)) == [f"{place:05}" for place in expected]


@pytest.mark.promise("W11")
def test_manual_checkpoints_go_only_when_they_are_asked_for() -> None:
    checkpoints = made("mamma")

    assert prune_order(checkpoints) == ("00001",)
    assert prune_order(checkpoints, with_manual=True) == ("00001", "00000", "00002", "00003")


@given(st.text(alphabet="ampr", max_size=60), st.integers(0, 40), st.randoms())
def test_as_many_are_kept_as_promised_and_the_last_of_each_kind_for_good(
    letters: str, keep_min: int, chance: Random
) -> None:
    checkpoints = made(letters)
    last = {one.occasion: one.id for one in checkpoints}
    chance.shuffle(checkpoints)

    order = prune_order(checkpoints, with_manual=True)
    gone = surplus(order, count=len(checkpoints), keep_min=keep_min)

    assert len(checkpoints) - len(gone) >= min(keep_min, len(checkpoints))
    assert gone == order[: len(gone)]
    assert not {last.get(Occasion.PUBLISH), last.get(Occasion.PRE_RESTORE)} & set(gone)


@pytest.mark.promise("W11")
def test_a_thousand_are_kept_while_there_is_room() -> None:
    def gone(count: int) -> tuple[Id, ...]:
        return surplus(prune_order(made("a" * count)), count=count)

    assert gone(KEEP_MIN) == ()
    assert gone(KEEP_MIN + 2) == ("00000", "00001")
