"""List what is in a directory that is open."""

from __future__ import annotations

import os
from collections.abc import Iterator
from operator import itemgetter

from holdfast.workbench.core.stat_cache import line_of
from holdfast.workbench.core.touching import is_stage

_BY_NAME = itemgetter(0)

Seen = tuple[bytes, bytes, os.stat_result]
"""A name in a directory as it was listed: the name, its line, and what the line is made of."""


def every_name(directory: int, path: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Every name as of now in the directory at a path but what is ours, and what path it makes."""
    with os.scandir(directory) as entries:
        names = [os.fsencode(entry.name) for entry in entries]
    for name in names:
        way = path + b"/" + name if path else name
        if not is_stage(way):
            yield name, way


def seen_in(directory: int) -> list[Seen]:
    """Every name as of now in a directory, also what is ours, sorted."""
    seen: list[Seen] = []
    with os.scandir(directory) as entries:
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            # As os.fsencode, which takes as long as the rest of this.
            seen.append((entry.name.encode("utf-8", "surrogateescape"), line_of(status), status))
    seen.sort(key=_BY_NAME)
    return seen
