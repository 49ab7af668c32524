"""Show how one text became another, as people are used to, in bounded time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import unified_diff
from itertools import islice
from typing import Final

_COMPARED_MAX: Final = 400  # lines on both sides together: beyond that it is shown as one change
_AROUND: Final = 3


def diff(path: str, before: Sequence[str] | None, after: Sequence[str] | None) -> str:
    """The lines that went and came; None is a file that is not there."""
    old, new = list(before or ()), list(after or ())
    heads = [
        "--- /dev/null" if before is None else f"--- a/{path}",
        "+++ /dev/null" if after is None else f"+++ b/{path}",
    ]
    first = _common(old, new)
    last = _common(old[first:][::-1], new[first:][::-1])
    above = max(0, first - _AROUND)
    below = max(0, last - _AROUND)
    old, new = old[above : len(old) - below], new[above : len(new) - below]
    lead, tail = first - above, last - below
    if len(old) + len(new) <= _COMPARED_MAX:
        hunks = _compared(old, new, lead, tail)
        return "\n".join([*heads, *(_moved(line, above) for line in hunks)])
    body = [
        _hunk(above, len(old), len(new)),
        *(f" {line}" for line in old[:lead]),
        *(f"-{line}" for line in old[lead : len(old) - tail]),
        *(f"+{line}" for line in new[lead : len(new) - tail]),
        *(f" {line}" for line in old[len(old) - tail :]),
    ]
    return "\n".join([*heads, *body])


def bounded(text: str, *, chars_max: int) -> str:
    """As much of the beginning of a text as fits, with a word on what is left out."""
    if len(text) <= chars_max:
        return text
    return f"{text[:chars_max]}\n… ({len(text) - chars_max} more characters)"


def _compared(old: list[str], new: list[str], lead: int, tail: int) -> Iterator[str]:
    """The hunks, with what both begin and end with around them and never in them.

    Otherwise a change may be told of lines further down, with less below it than `patch` wants.
    """
    above = [f"\n<{number}" for number in range(lead)]  # no line has a line end in it
    below = [f"\n>{number}" for number in range(tail)]
    around = dict(zip(above + below, old[:lead] + old[len(old) - tail :], strict=True))
    hunks = unified_diff(
        above + old[lead : len(old) - tail] + below,
        above + new[lead : len(new) - tail] + below,
        n=_AROUND,
        lineterm="",
    )
    for line in islice(hunks, 2, None):
        yield line[0] + around.get(line[1:], line[1:])


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    count = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        count += 1
    return count


def _moved(line: str, by: int) -> str:
    """A head of a hunk, counted from the beginning of the file; any other line as it is."""
    if not by or not line.startswith("@@ "):
        return line
    _, old, new, _ = line.split(" ", 3)
    return f"@@ -{_shifted(old[1:], by)} +{_shifted(new[1:], by)} @@"


def _shifted(span: str, by: int) -> str:
    first, comma, count = span.partition(",")
    return f"{int(first) + by}{comma}{count}"


def _hunk(above: int, old: int, new: int) -> str:
    first_old, first_new = (above + (1 if count else 0) for count in (old, new))
    return f"@@ -{first_old},{old} +{first_new},{new} @@"
