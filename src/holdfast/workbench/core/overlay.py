"""Decide, from what a layer over a project holds, where the draft may differ from it.

A layer holds a whole file for each that was written to, a directory for each that something in it
was changed of, and a device of number 0 for each name that was removed. A directory that was made
where another had been removed is marked: nothing of the old shows through.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from holdfast.nouns import PATH_BYTES_MAX, PathInvalid, RelativePath
from holdfast.workbench.core.coverage import DEPTH_MAX
from holdfast.workbench.core.touching import is_stage
from holdfast.workbench.model import Touched


class Listed(NamedTuple):
    """One name in a layer; `is_closed` says of a directory that nobody could look into it."""

    path: bytes
    mode: int
    is_opaque: bool = False
    is_closed: bool = False
    stamp: tuple[int, int, int] = (0, 0, 0)  # changes whenever it is written to


class Layer:
    """The upper layer of an overlay: where a draft decides itself, and where the project shows."""

    def __init__(self, listed: Iterable[Listed]) -> None:
        self._at = {each.path: each for each in listed}

    def decides(self, path: RelativePath) -> bool:
        """Whether the layer alone decides what is seen at a path; else the project shows through.

        A directory that is in both is decided by the layer, but not what is in it.
        """
        return path.raw in self._at or any(_hides(self._at.get(above)) for above in _above(path))

    def hides(self, path: RelativePath) -> bool:
        """Whether nothing of the project is seen below a path."""
        return any(_hides(self._at.get(each)) for each in (path.raw, *_above(path)))

    def is_merged(self, path: RelativePath) -> bool:
        """Whether a directory of the layer shows what a directory of the project has there, too."""
        here = self._at.get(path.raw)
        return here is not None and stat.S_ISDIR(here.mode) and not self.hides(path)


def _above(path: RelativePath) -> Iterator[bytes]:
    raw = path.raw
    while b"/" in raw:
        raw = raw.rpartition(b"/")[0]
        yield raw


def _hides(listed: Listed | None) -> bool:
    """Whether nothing of the project is seen below it."""
    return listed is not None and (listed.is_opaque or not stat.S_ISDIR(listed.mode))


def touched(listed: Iterable[Listed]) -> Touched:
    """Where a draft may differ, of all that its layer holds, in any order."""
    paths: dict[bytes, RelativePath] = {}
    whole: dict[bytes, RelativePath] = {}
    for each in listed:
        if is_stage(each.path):
            continue
        path = nearest(each.path)
        (whole if _is_whole(each, path) else paths)[path.raw] = path
    return Touched(
        frozenset(path for raw, path in paths.items() if not _is_within(raw, whole)),
        frozenset(path for raw, path in whole.items() if not _is_below(raw, whole)),
    )


def nearest(raw: bytes) -> RelativePath:
    """The path itself, or what it is in if it is too long for a path."""
    while True:
        try:
            return RelativePath.of(raw)
        except PathInvalid:
            raw = raw.rpartition(b"/")[0]


def _is_whole(each: Listed, path: RelativePath) -> bool:
    """Whether to look at all that is below, too."""
    if len(each.path) > PATH_BYTES_MAX:
        return True  # whoever looks at what it is in says that it is too long
    is_deepest = len(path.parts) >= DEPTH_MAX
    return stat.S_ISDIR(each.mode) and (each.is_opaque or each.is_closed or is_deepest)


def _is_within(raw: bytes, directories: Mapping[bytes, object]) -> bool:
    return raw in directories or _is_below(raw, directories)


def _is_below(raw: bytes, directories: Mapping[bytes, object]) -> bool:
    while directories and b"/" in raw:
        raw = raw.rpartition(b"/")[0]
        if raw in directories:
            return True
    return False
