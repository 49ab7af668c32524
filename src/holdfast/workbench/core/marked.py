"""Merge two changes of one text and mark with lines what clashes, as git does."""

from __future__ import annotations

from itertools import takewhile
from typing import Final, NamedTuple

from holdfast.workbench.core.merge import Clash, stretches

DRAFT: Final = b"<<<<<<< draft\n"
BETWEEN: Final = b"=======\n"
PROJECT: Final = b">>>>>>> project\n"


class Marked(NamedTuple):
    """A text that both changes are in, and how many places of it somebody must decide about."""

    content: bytes
    clashes: int


def merge_marked(base: bytes, theirs: bytes, ours: bytes) -> Marked:
    """Both changes in one text; where they clash both are there, between markers."""
    merged: list[bytes] = []
    clashes = 0
    for stretch in stretches(base, theirs, ours):
        if isinstance(stretch, Clash):
            clashes += 1
            merged += _marked(stretch)
        else:
            merged += stretch
    return Marked(b"".join(merged), clashes)


def _marked(clash: Clash) -> list[bytes]:
    """Both sides between markers; lines that they share at the ends stand outside."""
    ours, theirs = clash.ours, clash.theirs
    first = _shared(ours, theirs)
    last = _shared(ours[first:][::-1], theirs[first:][::-1])
    end, their_end = len(ours) - last, len(theirs) - last
    return [
        *ours[:first],
        DRAFT,
        *_ended(ours[first:end]),
        BETWEEN,
        *_ended(theirs[first:their_end]),
        PROJECT,
        *ours[end:],
    ]


def _shared(one: tuple[bytes, ...], other: tuple[bytes, ...]) -> int:
    """How many lines are the same from the beginning on."""
    same = (a == b for a, b in zip(one, other, strict=False))
    return sum(1 for _ in takewhile(bool, same))


def _ended(lines: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """The lines, with a newline after the last: a marker begins a line."""
    if not lines or lines[-1].endswith(b"\n"):
        return lines
    return (*lines[:-1], lines[-1] + b"\n")
