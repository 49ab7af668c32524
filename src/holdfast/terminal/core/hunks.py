"""Read a diff as editors want it: what stood somewhere, and what stands there now."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

_SIZES: Final = re.compile(r"@@ -[0-9]+(?:,([0-9]{1,9}))? \+[0-9]+(?:,([0-9]{1,9}))? @@")


class Hunk(NamedTuple):
    """Lines of a file before and after; `before` is None of a file that is new."""

    path: str
    before: str | None
    after: str


@dataclass(slots=True)
class _Lines:
    """The lines of one hunk so far, and how many of each are to come."""

    left: list[int]
    old: list[str] = field(default_factory=list[str])
    new: list[str] = field(default_factory=list[str])

    def take(self, line: str) -> bool:
        """Take a line; say whether it can be one of this hunk."""
        sign = line[:1] or " "
        if sign not in " +-":
            return False
        if sign != "+":
            self.old.append(f"{line[1:]}\n")
            self.left[0] -= 1
        if sign != "-":
            self.new.append(f"{line[1:]}\n")
            self.left[1] -= 1
        return min(self.left) >= 0


def hunks_of(text: str) -> list[Hunk] | None:
    """All hunks of a diff; None if it is no diff, or not the whole of one."""
    try:
        return list(_read(text.removesuffix("\n").split("\n") if text else ()))
    except _NoDiffError:
        return None


class _NoDiffError(Exception):
    """It is not what a diff is like."""


def _read(lines: Sequence[str]) -> Iterator[Hunk]:
    at, path, is_new = 0, "", False
    while at < len(lines):
        if lines[at].startswith("--- ") and lines[at + 1 : at + 2] != []:
            is_new, path = lines[at] == "--- /dev/null", _path(lines[at : at + 2])
            at += 2
            continue
        if lines[at].startswith("\\ "):  # there is no newline at the end
            at += 1
            continue
        sizes = _SIZES.match(lines[at])
        if sizes is None or not path:
            raise _NoDiffError
        hunk = _Lines([1 if size is None else int(size) for size in sizes.groups()])
        at += 1
        while any(hunk.left):
            if at == len(lines) or not hunk.take(lines[at]):
                raise _NoDiffError
            at += 1
        yield Hunk(path, None if is_new else "".join(hunk.old), "".join(hunk.new))


def _path(heads: Sequence[str]) -> str:
    """The name of the file, as it is now if it still is there."""
    for head, sign, side in ((heads[1], "+++ ", "b/"), (heads[0], "--- ", "a/")):
        if not head.startswith(sign):
            raise _NoDiffError
        name = head.removeprefix(sign)
        if name != "/dev/null":
            return name.removeprefix(side)
    raise _NoDiffError
