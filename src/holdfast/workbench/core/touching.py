"""The way from a root to every path that may have been touched."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from holdfast.workbench.model import STAGE_PREFIX, Touched

_STAGE = STAGE_PREFIX.encode()


@dataclass(slots=True)
class Way:
    """A name on the way: touched itself, replaced with all below it, or only passed through."""

    is_touched: bool = False
    is_whole: bool = False
    below: dict[bytes, Way] = field(default_factory=dict[bytes, "Way"])


def ways_to(touched: Touched) -> Way:
    """The ways to what was touched, from the root; a stage of ours is not among them."""
    root = Way()
    for path in touched.paths | touched.whole:
        if is_stage(path.parts[0]):
            continue
        way = root
        for part in path.parts:
            way = way.below.setdefault(part, Way())
        way.is_touched = True
        way.is_whole = way.is_whole or path in touched.whole
    return root


def on_the_way_to(paths: Iterable[bytes]) -> frozenset[bytes]:
    """These paths, and every directory that leads to one of them, except the root."""
    ways: set[bytes] = set()
    for path in paths:
        while path not in ways:
            ways.add(path)
            path, slash, _ = path.rpartition(b"/")
            if not slash:
                break
    return frozenset(ways)


def is_stage(name: bytes) -> bool:
    """Whether a name directly below a root is that of a stage, which nothing ever covers."""
    return name.startswith(_STAGE)
