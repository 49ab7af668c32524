"""Find the place of a draft that is a layer, or make it anew over what was written.

Whoever held it may have died, and the project's path may lead to another directory by now. A place
covers the one that it was made over, so that one is written down; and the kernel uncovers what is
removed, so that whoever wrote to the path would write to the project. Such a place is not used.
"""

from __future__ import annotations

import os
import select
from contextlib import ExitStack
from pathlib import Path

from holdfast.confine import Place, PlaceSpec, create, end, find
from holdfast.confine.failures import PlaceHeld, PlaceLost
from holdfast.workbench.failures import ProjectRefused
from holdfast.workbench.tree_removal import remove_whole
from holdfast.world import disk_failure

_UPPER, _OLD, _GROUND = "upper", "old-upper", "ground"
_TRIES_MAX, _WAIT = 200, 0.01  # who was killed while it made a place takes a moment to go


def find_or_create_place(spec: PlaceSpec) -> Place:
    """The place that somebody holds, or a new one; either may be lost at any moment.

    Raises ProjectRefused while something runs over a project that was replaced by another.
    """
    for _ in range(_TRIES_MAX):
        try:
            found = _found(spec)
            if found is not None:
                return found
            place = create(spec)
        except (PlaceHeld, PlaceLost):  # somebody was faster, or is on the way out
            select.select([], [], [], _WAIT)
            continue
        _record_covered(spec)
        return place
    raise PlaceLost(directory=spec.directory)


def processes_in(place: Place) -> int:
    """How many processes are inside, beside the holder."""
    return sum(name.isdigit() for name in place.files.names(b"/proc")) - 1


def layer_of(spec: PlaceSpec) -> Path:
    """Where what is written to the project lands."""
    return Path(spec.directory, _UPPER)


def drop_layer(spec: PlaceSpec) -> None:
    """Take a layer away that is mounted nowhere, in one step; it goes when a place is made next."""
    layer = layer_of(spec)
    try:
        os.rename(layer, layer.with_name(_OLD))
    except OSError as error:
        raise disk_failure(error, path=str(layer)) from error


def remove_old_layer(spec: PlaceSpec) -> None:
    """Give back the room of a layer that was taken away."""
    remove_whole(Path(spec.directory, _OLD))


def _found(spec: PlaceSpec) -> Place | None:
    """The place that somebody holds; one that shows what is no longer there is ended."""
    place = find(spec.directory)
    if place is None:
        remove_old_layer(spec)
        return None
    with ExitStack() as undo:
        undo.callback(place.close)
        if _is_same_directory(spec) and place.is_covering:
            undo.pop_all()
            return place
        if processes_in(place):
            raise ProjectRefused(
                path=spec.project,
                reason="another directory has taken its place while something runs in the draft",
            )
    end(spec.directory)
    return None


def _is_same_directory(spec: PlaceSpec) -> bool:
    try:
        noted = Path(spec.directory, _GROUND).read_text("ascii")
    except OSError:
        return True  # nobody knows: whoever made it was killed a moment later
    return noted == _covered_inodes(spec)


def _record_covered(spec: PlaceSpec) -> None:
    path = Path(spec.directory, _GROUND)
    try:
        path.unlink(missing_ok=True)
        path.write_text(_covered_inodes(spec), encoding="ascii")
    except OSError as error:
        raise disk_failure(error, path=str(path)) from error


def _covered_inodes(spec: PlaceSpec) -> str:
    """Which directories are at the paths of a place now."""
    found: list[str] = []
    for path in spec.covered:
        try:
            status = os.stat(path)
        except OSError:
            found.append("none")
        else:
            found.append(f"{status.st_dev}:{status.st_ino}")
    return " ".join(found)
