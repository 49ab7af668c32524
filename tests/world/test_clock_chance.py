"""Chance is even, and ids are all different and sorted as they were made."""

from __future__ import annotations

from copy import copy
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.nouns import check_id
from holdfast.world import IdMaker, RandomSource, SystemClock, SystemRandomSource
from holdfast.world.testing import ManualClock, SeededRandomSource


@pytest.mark.parametrize(
    "chance", [SystemRandomSource(), SeededRandomSource(1)], ids=["system", "seeded"]
)
def test_draws_are_in_range_and_spread(chance: RandomSource) -> None:
    fractions = [chance.fraction() for _ in range(1000)]

    assert all(0.0 <= each < 1.0 for each in fractions)
    assert 0.4 < sum(fractions) / 1000 < 0.6
    assert [len(chance.draw(count)) for count in (0, 1, 10)] == [0, 1, 10]
    assert len({chance.draw(10) for _ in range(1000)}) == 1000


class _Extreme:
    """A chance that always draws the same byte."""

    def __init__(self, byte: int) -> None:
        self._byte = byte

    def fraction(self) -> float:
        return 0.0

    def draw(self, count: int) -> bytes:
        return bytes([self._byte]) * count


moves = st.lists(st.tuples(st.sampled_from(["advance", "set"]), st.floats(0, 2e9)), max_size=30)


@given(moves, st.sampled_from([SeededRandomSource(3), _Extreme(0), _Extreme(255)]))
def test_ids_sort_as_they_were_made_whatever_the_clock_does(
    steps: list[tuple[str, float]], chance: RandomSource
) -> None:
    clock = ManualClock()
    maker = IdMaker(clock, chance)
    made = [maker.make("ses")]
    for how, seconds in steps:
        if how == "advance":
            clock.advance(min(seconds, 1e6))
        else:
            clock.set(seconds)
        made += [maker.make("ses"), maker.make("ses")]

    assert made == sorted(set(made))
    assert [check_id(each, "ses") for each in made] == made


def test_an_id_tells_its_time() -> None:
    assert IdMaker(ManualClock(1469922850.259), _Extreme(0)).make("ses") == (
        "ses_01arz3ndek0000000000000000"
    )


def test_threads_never_make_the_same_id() -> None:
    maker = IdMaker(SystemClock(), SystemRandomSource())
    made: list[list[str]] = [[] for _ in range(4)]

    def make(into: list[str]) -> None:
        into.extend(maker.make("ses") for _ in range(2000))

    threads = [Thread(target=make, args=(each,)) for each in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({each for one in made for each in one}) == 8000
    assert all(one == sorted(one) for one in made)


def test_a_fork_of_the_process_does_not_make_the_same_id() -> None:
    maker = IdMaker(ManualClock(), SystemRandomSource())
    maker.make("ses")
    forked = copy(maker)

    assert forked.make("ses") != maker.make("ses")
