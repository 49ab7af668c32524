"""Unified diffs of bounded size, and selection of single hunks. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from holdfast.nouns import RelativePath
from holdfast.workbench.diff.lines import Match, matches, split_lines
from holdfast.workbench.diff.merge import is_text
from holdfast.workbench.failures import HunkMissing

CONTEXT = 3
LINES_MAX = 10_000


@dataclass(frozen=True, slots=True)
class DiffHunk:
    """Replaced lines, with positions counted from 0."""

    before: int
    after: int
    removed: tuple[bytes, ...]
    added: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class UnifiedDiff:
    """A unified diff; omitted lines are counted in `lines_left_out`."""

    text: bytes
    added: int = 0
    removed: int = 0
    lines_left_out: int = 0
    hunks: int = 0


def hunks(before: bytes, after: bytes) -> tuple[DiffHunk, ...]:
    """Return the hunks between two versions, in order."""
    old, new = split_lines(before), split_lines(after)
    ends = [Match(0, 0, 0), *matches(old, new), Match(len(old), len(new), 0)]
    found: list[DiffHunk] = []
    for one, other in pairwise(ends):
        here, there = one.before + one.count, one.after + one.count
        removed, added = tuple(old[here : other.before]), tuple(new[there : other.after])
        if removed or added:
            found.append(DiffHunk(here, there, removed, added))
    return tuple(found)


def with_hunks(before: bytes, chosen: Iterable[DiffHunk]) -> bytes:
    """Apply a selection of hunks to the old version."""
    lines, made, here = split_lines(before), list[bytes](), 0
    for hunk in sorted(chosen, key=lambda hunk: hunk.before):
        end = hunk.before + len(hunk.removed)
        assert hunk.before >= here, "two hunks replace the same lines"
        assert tuple(lines[hunk.before : end]) == hunk.removed, "the hunk is of another file"
        made += [*lines[here : hunk.before], *hunk.added]
        here = end
    return b"".join([*made, *lines[here:]])


def unified(before: bytes, after: bytes, *, lines_max: int | None = LINES_MAX) -> UnifiedDiff:
    """Return numbered hunks as `diff -u` prints them, without file header.

    Empty if either side is not text. A `lines_max` of None shows everything.
    """
    if before == after or not (is_text(before) and is_text(after)):
        return UnifiedDiff(b"")
    found = hunks(before, after)
    numbers = {hunk: number for number, hunk in enumerate(found, start=1)}
    old = split_lines(before)
    lines = [line for group in _grouped(found) for line in _shown(group, old, numbers[group[0]])]
    return UnifiedDiff(
        b"".join(lines[:lines_max]),
        added=sum(len(hunk.added) for hunk in found),
        removed=sum(len(hunk.removed) for hunk in found),
        lines_left_out=0 if lines_max is None else max(0, len(lines) - lines_max),
        hunks=len(found),
    )


def _grouped(found: Sequence[DiffHunk]) -> Iterator[list[DiffHunk]]:
    """Group hunks whose context overlaps."""
    group: list[DiffHunk] = []
    for hunk in found:
        if group and hunk.before - _end(group[-1]) > 2 * CONTEXT:
            yield group
            group = []
        group.append(hunk)
    if group:
        yield group


def _shown(group: list[DiffHunk], old: list[bytes], number: int) -> Iterator[bytes]:
    first, last = group[0], group[-1]
    start, end = max(0, first.before - CONTEXT), min(len(old), _end(last) + CONTEXT)
    there = first.after - (first.before - start)
    grown = sum(len(hunk.added) - len(hunk.removed) for hunk in group)
    ranges = _range(start, end - start), _range(there, end - start + grown)
    yield b"@@ -%s +%s @@ %s\n" % (*ranges, _numbered(number, len(group)))
    here = start
    for hunk in group:
        yield from (_line(b" ", line) for line in old[here : hunk.before])
        yield from (_line(b"-", line) for line in hunk.removed)
        yield from (_line(b"+", line) for line in hunk.added)
        here = _end(hunk)
    yield from (_line(b" ", line) for line in old[here:end])


def _numbered(first: int, count: int) -> bytes:
    """Numbers by which the hunks of a group can be selected."""
    return b"change %d" % first if count == 1 else b"changes %d-%d" % (first, first + count - 1)


def _end(hunk: DiffHunk) -> int:
    return hunk.before + len(hunk.removed)


def _range(start: int, count: int) -> bytes:
    """Format a range; an empty one is named by the line before it."""
    return b"%d,%d" % (start + 1 if count else start, count)


def _line(sign: bytes, line: bytes) -> bytes:
    return (
        sign + line if line.endswith(b"\n") else sign + line + b"\n\\ No newline at end of file\n"
    )


def picked(path: RelativePath, before: bytes, after: bytes, numbers: Collection[int]) -> bytes:
    """Return the old version with these hunks, numbered from 1; raises HunkMissing."""
    found = hunks(before, after) if is_text(before) and is_text(after) else ()
    for number in sorted(numbers):
        if not 1 <= number <= len(found):
            raise HunkMissing(path=str(path), number=number, count=len(found))
    return with_hunks(before, [found[number - 1] for number in numbers])
