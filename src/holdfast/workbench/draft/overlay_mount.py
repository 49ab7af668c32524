"""Find the place of an overlay draft, or mount it again over its upper layer.

The holder may have died, and the project path may lead to another directory by now. A place covers
the inode it was mounted over, which is recorded in the file `ground`. If that directory was
replaced, the kernel no longer covers the path, and processes would write to the project itself:
such a place is not used.
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
# A killed holder takes a moment to exit.
_TRIES_MAX, _WAIT = 200, 0.01


def find_or_create_place(spec: PlaceSpec) -> Place:
    """Return the running place of a draft, or a new one; either can be lost at any time.

    Raises ProjectRefused while processes run over a project directory that was replaced.
    """
    for _ in range(_TRIES_MAX):
        try:
            found = _found(spec)
            if found is not None:
                return found
            place = create(spec)
        except (PlaceHeld, PlaceLost):
            # Another process creates or ends it.
            select.select([], [], [], _WAIT)
            continue
        _record_covered(spec)
        return place
    raise PlaceLost(directory=spec.directory)


def processes_in(place: Place) -> int:
    """Number of processes inside, not counting the holder."""
    return sum(name.isdigit() for name in place.files.names(b"/proc")) - 1


def layer_of(spec: PlaceSpec) -> Path:
    """Path of the upper layer."""
    return Path(spec.directory, _UPPER)


def drop_layer(spec: PlaceSpec) -> None:
    """Rename away the layer of an unmounted place; `remove_old_layer` deletes it."""
    layer = layer_of(spec)
    try:
        os.rename(layer, layer.with_name(_OLD))
    except OSError as error:
        raise disk_failure(error, path=str(layer)) from error


def remove_old_layer(spec: PlaceSpec) -> None:
    remove_whole(Path(spec.directory, _OLD))


def _found(spec: PlaceSpec) -> Place | None:
    """Return the running place; one over a replaced directory is ended."""
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
        # Unknown: its creator was killed before recording it.
        return True
    return noted == _covered_inodes(spec)


def _record_covered(spec: PlaceSpec) -> None:
    path = Path(spec.directory, _GROUND)
    try:
        path.unlink(missing_ok=True)
        path.write_text(_covered_inodes(spec), encoding="ascii")
    except OSError as error:
        raise disk_failure(error, path=str(path)) from error


def _covered_inodes(spec: PlaceSpec) -> str:
    """Device and inode of each covered path."""
    found: list[str] = []
    for path in spec.covered:
        try:
            status = os.stat(path)
        except OSError:
            found.append("none")
        else:
            found.append(f"{status.st_dev}:{status.st_ino}")
    return " ".join(found)
