"""Find common lines of two texts in bounded time. Pure.

Lines are bytes terminated by LF; no encoding is assumed. Lines that occur once on both sides are
matched first, as in patience diff; the stretches between them are compared by Myers' algorithm up
to a bound on the number of differences. Beyond the bound a stretch counts as replaced: coarser,
never wrong.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

# The cost of comparing a stretch grows with their square.
_DIFFERENCES_MAX: Final = 300


@dataclass(frozen=True, slots=True, order=True)
class Match:
    """A run of equal lines: start on both sides, and length."""

    before: int
    after: int
    count: int


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A part of both sides that is still to be compared, by its ends."""

    before: int
    before_end: int
    after: int
    after_end: int

    @property
    def is_empty(self) -> bool:
        return self.before == self.before_end or self.after == self.after_end


def split_lines(content: bytes) -> list[bytes]:
    """Split into lines with their terminators; joining them restores the content."""
    lines = [line + b"\n" for line in content.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def matches(before: Sequence[bytes], after: Sequence[bytes]) -> tuple[Match, ...]:
    """Return the common runs in order; adjacent runs are joined."""
    numbers: dict[bytes, int] = {}
    ours = [numbers.setdefault(line, len(numbers)) for line in before]
    theirs = [numbers.setdefault(line, len(numbers)) for line in after]
    found: list[Match] = []
    waiting = [_Stretch(0, len(ours), 0, len(theirs))]
    while waiting:
        stretch = _trimmed(ours, theirs, waiting.pop(), found)
        if stretch.is_empty:
            continue
        anchors = _anchors(ours, theirs, stretch)
        if not anchors:
            found += _compared(ours, theirs, stretch)
            continue
        corners = [(stretch.before - 1, stretch.after - 1), *anchors]
        corners.append((stretch.before_end, stretch.after_end))
        found += [Match(one, other, 1) for one, other in anchors]
        waiting += [
            _Stretch(a + 1, c, b + 1, d)
            for (a, b), (c, d) in pairwise(corners)
            if c > a + 1 and d > b + 1
        ]
    return _joined(sorted(found))


def _trimmed(ours: list[int], theirs: list[int], stretch: _Stretch, found: list[Match]) -> _Stretch:
    """Match equal lines at both ends of a stretch."""
    before, before_end = stretch.before, stretch.before_end
    after, after_end = stretch.after, stretch.after_end
    while before < before_end and after < after_end and ours[before] == theirs[after]:
        before, after = before + 1, after + 1
    while (
        before < before_end and after < after_end and ours[before_end - 1] == theirs[after_end - 1]
    ):
        before_end, after_end = before_end - 1, after_end - 1
    found.append(Match(stretch.before, stretch.after, before - stretch.before))
    found.append(Match(before_end, after_end, stretch.before_end - before_end))
    return _Stretch(before, before_end, after, after_end)


def _anchors(ours: list[int], theirs: list[int], stretch: _Stretch) -> list[tuple[int, int]]:
    """Longest sequence of lines that are unique on each side, in order on both."""
    here = _once(ours, stretch.before, stretch.before_end)
    there = _once(theirs, stretch.after, stretch.after_end)
    pairs = [(place, there[line]) for line, place in here.items() if line in there]
    # By patience sorting: `ends` holds the pile tops, `back` the card under each.
    ends: list[int] = []
    tops: list[int] = []
    back: list[int] = []
    for card, (_, place) in enumerate(pairs):
        pile = bisect_left(ends, place)
        ends[pile : pile + 1] = [place]
        tops[pile : pile + 1] = [card]
        back.append(tops[pile - 1] if pile else -1)
    run: list[tuple[int, int]] = []
    card = tops[-1] if tops else -1
    while card >= 0:
        run.append(pairs[card])
        card = back[card]
    return run[::-1]


def _once(lines: list[int], start: int, end: int) -> dict[int, int]:
    """Positions of lines that occur exactly once, in order."""
    places: dict[int, int] = {}
    again: set[int] = set()
    for place in range(start, end):
        if lines[place] in places:
            again.add(lines[place])
        places[lines[place]] = place
    return {line: place for line, place in places.items() if line not in again}


def _compared(ours: list[int], theirs: list[int], stretch: _Stretch) -> list[Match]:
    """Myers' greedy search for the shortest edit, if it is short enough."""
    a = ours[stretch.before : stretch.before_end]
    b = theirs[stretch.after : stretch.after_end]
    # For each diagonal, how far into `a` so many differences lead.
    reach = {1: 0}
    trail: list[dict[int, int]] = []
    for differences in range(min(len(a) + len(b), _DIFFERENCES_MAX) + 1):
        trail.append(dict(reach))
        for diagonal in range(-differences, differences + 1, 2):
            x = _start(reach, diagonal, differences)
            y = x - diagonal
            while x < len(a) and y < len(b) and a[x] == b[y]:
                x, y = x + 1, y + 1
            reach[diagonal] = x
            if x >= len(a) and y >= len(b):
                return _walked_back(trail, len(a), len(b), stretch)
    return []


def _goes_down(reach: dict[int, int], diagonal: int, differences: int) -> bool:
    """Whether the next edit is an insertion, and not a deletion."""
    return diagonal == -differences or (
        diagonal != differences and reach[diagonal - 1] < reach[diagonal + 1]
    )


def _start(reach: dict[int, int], diagonal: int, differences: int) -> int:
    if _goes_down(reach, diagonal, differences):
        return reach[diagonal + 1]
    return reach[diagonal - 1] + 1


def _walked_back(trail: list[dict[int, int]], x: int, y: int, stretch: _Stretch) -> list[Match]:
    found: list[Match] = []
    for differences in range(len(trail) - 1, -1, -1):
        reach, diagonal = trail[differences], x - y
        start = _start(reach, diagonal, differences)
        found.append(Match(stretch.before + start, stretch.after + start - diagonal, x - start))
        if _goes_down(reach, diagonal, differences):
            x, y = start, start - diagonal - 1
        else:
            x, y = start - 1, start - diagonal
    return found


def _joined(found: list[Match]) -> tuple[Match, ...]:
    joined: list[Match] = []
    for match in found:
        if not match.count:
            continue
        last = joined[-1] if joined else Match(-1, -1, 0)
        if (last.before + last.count, last.after + last.count) == (match.before, match.after):
            joined[-1] = Match(last.before, last.after, last.count + match.count)
        else:
            joined.append(match)
    return tuple(joined)
