"""Three-way merge of texts, line by line, with or without conflict markers. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, NamedTuple

from holdfast.workbench.diff.lines import matches, split_lines

# Larger results could not be reviewed.
MERGE_BYTES_MAX: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class MergedText:
    """Result of a merge without conflicts."""

    content: bytes


@dataclass(frozen=True, slots=True)
class LineConflict:
    """Lines changed on both sides; `line` counts from 1 in the base."""

    line: int
    base: tuple[bytes, ...]
    theirs: tuple[bytes, ...]
    ours: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class LineConflicts:
    """Result of a merge that failed."""

    places: tuple[LineConflict, ...]


def is_text(content: bytes) -> bool:
    """Whether content is mergeable by lines: no NUL byte, and not too large."""
    return len(content) <= MERGE_BYTES_MAX and b"\0" not in content


def merge(base: bytes, theirs: bytes, ours: bytes) -> MergedText | LineConflicts:
    """Merge two changes of a text; changes of the same or adjacent lines conflict."""
    merged: list[bytes] = []
    clashes: list[LineConflict] = []
    for stretch in stretches(base, theirs, ours):
        if isinstance(stretch, LineConflict):
            clashes.append(stretch)
        else:
            merged += stretch
    return LineConflicts(tuple(clashes)) if clashes else MergedText(b"".join(merged))


def stretches(
    base: bytes, theirs: bytes, ours: bytes
) -> Iterator[tuple[bytes, ...] | LineConflict]:
    """Yield the merged text from its start: agreed lines, and conflicts."""
    lines, their_lines, our_lines = map(split_lines, (base, theirs, ours))
    in_theirs = _places(lines, their_lines)
    in_ours = _places(lines, our_lines)
    here = there = where = 0
    for line in [*(line for line in in_theirs if line in in_ours), len(lines)]:
        their_end = in_theirs.get(line, len(their_lines))
        our_end = in_ours.get(line, len(our_lines))
        clash = LineConflict(
            here + 1,
            tuple(lines[here:line]),
            tuple(their_lines[there:their_end]),
            tuple(our_lines[where:our_end]),
        )
        chosen = _chosen(clash)
        yield clash if chosen is None else chosen
        yield tuple(lines[line : line + 1])
        here, there, where = line + 1, their_end + 1, our_end + 1


def _places(base: list[bytes], side: list[bytes]) -> dict[int, int]:
    """Map each line of the base that a side kept to its new position."""
    return {
        match.before + offset: match.after + offset
        for match in matches(base, side)
        for offset in range(match.count)
    }


def _chosen(stretch: LineConflict) -> tuple[bytes, ...] | None:
    if stretch.ours in (stretch.theirs, stretch.base):
        return stretch.theirs
    return stretch.ours if stretch.theirs == stretch.base else None


DRAFT: Final = b"<<<<<<< draft\n"
BETWEEN: Final = b"=======\n"
PROJECT: Final = b">>>>>>> project\n"


class MarkedMerge(NamedTuple):
    """Merged text, and the number of conflicts marked in it."""

    content: bytes
    clashes: int


def merge_marked(base: bytes, theirs: bytes, ours: bytes) -> MarkedMerge:
    """Merge two changes of a text, with both sides between markers where they conflict."""
    merged: list[bytes] = []
    clashes = 0
    for stretch in stretches(base, theirs, ours):
        if isinstance(stretch, LineConflict):
            clashes += 1
            merged += _marked(stretch)
        else:
            merged += stretch
    return MarkedMerge(b"".join(merged), clashes)


def _marked(clash: LineConflict) -> list[bytes]:
    """Both sides between markers; common lines at the ends stay outside."""
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
    """Length of the common prefix."""
    same = (a == b for a, b in zip(one, other, strict=False))
    return sum(1 for _ in takewhile(bool, same))


def _ended(lines: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Terminate the last line: a marker must start a line."""
    if not lines or lines[-1].endswith(b"\n"):
        return lines
    return (*lines[:-1], lines[-1] + b"\n")
