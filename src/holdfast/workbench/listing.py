"""List what is in a directory that is open, but for what is ours."""

from __future__ import annotations

import os
from collections.abc import Iterator

from holdfast.workbench.core.touching import is_stage


def every_name(directory: int, path: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Every name as of now in the directory at a path, and the path that it makes."""
    with os.scandir(directory) as entries:
        names = [os.fsencode(entry.name) for entry in entries]
    for name in names:
        way = path + b"/" + name if path else name
        if not is_stage(way):
            yield name, way
