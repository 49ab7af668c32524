"""Decide who is who inside a place: which user and group numbers stand for which outside.

The uid inside is never 0, also if it is 0 outside: bubblewrap and Codex's own sandbox refuse to
start there, and nothing may look like root. Who may say so for everyone maps everyone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

INSIDE: Final = 1000
"""Our own number inside a place."""

EXTENTS_MAX: Final = 340  # the kernel's


@dataclass(frozen=True, slots=True)
class Extent:
    """So many numbers in a row inside, and where the row begins outside."""

    inside: int
    outside: int
    count: int


def narrow(own: int) -> tuple[Extent, ...]:
    """The map that an ordinary user may write: of itself."""
    return (Extent(INSIDE, own, 1),)


def wide(own: int, known: Iterable[tuple[int, int]]) -> tuple[Extent, ...]:
    """The map of everyone that is known outside, in which we have changed places with `INSIDE`.

    `known` are rows of numbers: where they begin, and how many. Raises ValueError if that is more
    than the kernel takes.
    """
    changed = {own: INSIDE, INSIDE: own}
    extents = [
        Extent(changed.get(first, first), first, last - first)
        for start, count in known
        for first, last in _cut(start, start + count, sorted(changed))
    ]
    if len(extents) > EXTENTS_MAX:
        raise ValueError(f"{len(extents)} extents are more than the kernel takes")
    return tuple(extents)


def known_in(text: str) -> tuple[tuple[int, int], ...]:
    """The rows of numbers that exist for us, from what /proc says of our own map."""
    rows = (line.split() for line in text.splitlines())
    return tuple((int(inside), int(count)) for inside, _, count in rows)


def written(extents: Iterable[Extent]) -> str:
    """A map as the kernel reads it."""
    return "".join(f"{each.inside} {each.outside} {each.count}\n" for each in extents)


def is_mapped(number: int, extents: Sequence[Extent]) -> bool:
    """Whether an outside id has a mapping inside."""
    return any(each.outside <= number < each.outside + each.count for each in extents)


def _cut(start: int, end: int, singles: Sequence[int]) -> Iterable[tuple[int, int]]:
    """The row from `start` to before `end`, in pieces, with a piece of its own for each single."""
    for single in singles:
        if start <= single < end:
            if start < single:
                yield start, single
            yield single, single + 1
            start = single + 1
    if start < end:
        yield start, end
