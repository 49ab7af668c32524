"""Show how one text became another, as people are used to, in bounded time."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import unified_diff
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
    if len(old) + len(new) <= _COMPARED_MAX:
        body = list(unified_diff(old, new, n=_AROUND, lineterm=""))[2:]
        return "\n".join([*heads, *(_moved(line, above) for line in body)])
    lead, tail = first - above, last - below
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
