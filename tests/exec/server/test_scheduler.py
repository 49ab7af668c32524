"""Who has little to say says it first, and who has much is heard, too."""

from __future__ import annotations

from collections import Counter

import pytest

from holdfast.exec.server.scheduler import WORDS_MAX, DueQueue

MUCH = WORDS_MAX + 1


def order(due: DueQueue[str], *, is_first_half: bool) -> list[str]:
    taken: list[str] = []
    while due:
        taken.append(due.take(is_first_half=is_first_half))
    return taken


@pytest.mark.parametrize(
    ("is_first_half", "expected"),
    [(True, ["word", "exit", "one", "other"]), (False, ["one", "other", "word", "exit"])],
)
def test_a_word_goes_first_in_the_first_half_of_a_turn(
    is_first_half: bool, expected: list[str]
) -> None:
    due = DueQueue[str]()
    for name, events in (("one", MUCH), ("word", 1), ("other", 100), ("exit", WORDS_MAX)):
        due.put(name, events)

    assert order(due, is_first_half=is_first_half) == expected


def test_who_waits_keeps_its_place_whatever_it_has_to_tell_by_now() -> None:
    due = DueQueue[str]()
    for name, events in (("a", 1), ("b", MUCH), ("c", 1), ("a", MUCH), ("b", 1)):
        due.put(name, events)

    assert order(due, is_first_half=True) == ["a", "c", "b"]


def test_nobody_starves_however_many_words_come() -> None:
    due, heard = DueQueue[str](), Counter[str]()
    for _ in range(100):
        for number in range(10):
            due.put(f"brief {number}", 1)
        for number in range(8):
            due.put(f"pours {number}", MUCH)
        heard[due.take(is_first_half=True)] += 1
        heard[due.take(is_first_half=False)] += 1

    assert {heard[f"pours {number}"] for number in range(8)} <= {12, 13}
    assert {heard[f"brief {number}"] for number in range(10)} == {10}


def test_who_is_dropped_tells_nothing() -> None:
    due = DueQueue[str]()
    for name, events in (("a", 1), ("b", MUCH), ("c", 1)):
        due.put(name, events)
    for name in ("a", "b", "nobody"):
        due.drop(name)

    assert order(due, is_first_half=False) == ["c"]
    due.put("a", 1)
    due.clear()
    assert not due
