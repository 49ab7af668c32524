"""Decide, from what a layer over a project holds, where the draft may differ from it.

A layer holds a whole file for each that was written to, a directory for each that something in it
was changed of, and a device of number 0 for each name that was removed. A directory that was made
where another had been removed is marked: nothing of the old shows through.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from holdfast.nouns import PathInvalid, RelativePath
from holdfast.workbench.core.coverage import DEPTH_MAX
from holdfast.workbench.core.touching import is_stage
from holdfast.workbench.model import Touched


class Listed(NamedTuple):
    """One name in a layer; `is_closed` says of a directory that nobody could look into it."""

    path: bytes
    mode: int
    is_opaque: bool = False
    is_closed: bool = False
    is_stand_in: bool = False
    stamp: tuple[int, int, int] = (0, 0, 0)  # changes whenever it is written to


def touched(listed: Iterable[Listed]) -> Touched:
    """Where a draft may differ, of all that its layer holds, in any order."""
    paths: set[RelativePath] = set()
    whole: set[RelativePath] = set()
    for each in listed:
        if is_stage(each.path) or each.is_stand_in:
            continue
        path, is_whole = _looked_at(each)
        (whole if is_whole else paths).add(path)
    return Touched(
        frozenset(path for path in paths if not _is_below(path, whole) and path not in whole),
        frozenset(path for path in whole if not _is_below(path, whole)),
    )


def nearest(raw: bytes) -> RelativePath:
    """The path itself, or what it is in if it is too long for a path."""
    while True:
        try:
            return RelativePath.of(raw)
        except PathInvalid:
            raw = raw.rpartition(b"/")[0]


def _looked_at(each: Listed) -> tuple[RelativePath, bool]:
    """Where to look, and whether with all that is below."""
    path = nearest(each.path)
    is_itself = path.raw == each.path  # else whoever looks at what it is in says that it is long
    is_replaced = stat.S_ISDIR(each.mode) and (each.is_opaque or each.is_closed)
    is_deepest = stat.S_ISDIR(each.mode) and len(path.parts) >= DEPTH_MAX
    return path, not is_itself or is_replaced or is_deepest


def _is_below(path: RelativePath, directories: set[RelativePath]) -> bool:
    return any(each in directories for each in _above(path))


def _above(path: RelativePath) -> Iterator[RelativePath]:
    while (parent := path.parent) is not None:
        yield parent
        path = parent
