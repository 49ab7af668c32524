"""Mark the changes of a draft that programs run by themselves.

Beside its name, two things make git run or obey a file: a configuration that names it
(`core.hooksPath`, `include.path`), and a directory that has all that a bare repository has. The
configuration is that of the project and of repositories in it, as the project and the draft have
it, and that of the person.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache

from holdfast.confine import (
    CONFIG_BYTES_MAX,
    obeyed_in,
    read_configuration,
    shared_configurations,
)
from holdfast.nouns import PathInvalid, RelativePath
from holdfast.workbench.core.tree import NodeSort
from holdfast.workbench.holding import Held
from holdfast.workbench.model import Change, Checkpoint, Sort
from holdfast.workbench.showing import Marker, marked_by_name
from holdfast.workbench.standing import Standing
from holdfast.workbench.store import Store

_BARE = {b"HEAD": NodeSort.FILE, b"objects": NodeSort.DIRECTORY, b"refs": NodeSort.DIRECTORY}
_WORDS = {
    "core.hooksPath": "git runs the hooks in it (core.hooksPath)",
    "include.path": "git obeys it as configuration (include.path)",
}
_IN_BARE = "git takes the directory for a bare repository, and obeys its configuration and hooks"


def marker_of(held: Held, standing: Standing) -> Marker:
    """What marks the changes of a draft, given the project and the draft as they are."""
    store, project = held.store, str(held.bench.project)
    directories = set(_directories(each.path for each in standing.changes))
    obeyed = {
        path: _WORDS[key]
        for checkpoint in (standing.theirs, standing.ours)
        for path, key in _obeyed(store, checkpoint, project, directories)
    }

    @cache
    def is_bare(directory: RelativePath | None) -> bool:
        return _is_bare(store, standing.ours, directory)

    def marker(change: Change) -> str:
        found = marked_by_name(change)
        if found or change.after is None or change.after.sort is Sort.DIRECTORY:
            return found
        path = change.path
        for each, why in obeyed.items():
            if path.within(each):
                return why
        above = path.parent
        if path.name in (b"config", b"HEAD") and is_bare(above):
            return _IN_BARE
        is_hook = above is not None and above.name == b"hooks"
        return _IN_BARE if is_hook and above is not None and is_bare(above.parent) else ""

    return marker


def _directories(paths: Iterable[RelativePath]) -> Iterator[RelativePath]:
    """Every directory above one of the paths, but for the project itself."""
    seen: set[RelativePath] = set()
    for path in paths:
        above = path.parent
        while above is not None and above not in seen:
            seen.add(above)
            yield above
            above = above.parent


def _obeyed(
    store: Store, checkpoint: Checkpoint, project: str, directories: Iterable[RelativePath]
) -> Iterator[tuple[RelativePath, str]]:
    """What configuration has git run or obey inside of the project, and by which key."""

    def read(path: str) -> bytes:
        inside = _inside(project, path)
        return read_configuration(path) if inside is None else _content(store, checkpoint, inside)

    home, shared = shared_configurations()
    worktrees = [
        os.fsdecode(b"/".join((os.fsencode(project), *each.parts)))
        for each in directories
        if store.node(checkpoint, each / b".git") is not None
    ]
    for worktree in (project, *worktrees):
        for each in obeyed_in(worktree, read, home=home, shared=shared):
            path = _inside(project, each.path)
            if path is not None:
                yield path, each.key


def _inside(project: str, path: str) -> RelativePath | None:
    """A path as it is seen from the project, if it is inside and can exist."""
    if not path.startswith(f"{project}/"):
        return None
    with suppress(PathInvalid):
        return RelativePath.of(os.fsencode(path[len(project) + 1 :]))
    return None


def _content(store: Store, checkpoint: Checkpoint, path: RelativePath) -> bytes:
    node = store.node(checkpoint, path)
    if node is None or node.sort is not NodeSort.FILE or node.size > CONFIG_BYTES_MAX:
        return b""
    return b"".join(store.content(node.object))


def _is_bare(store: Store, checkpoint: Checkpoint, directory: RelativePath | None) -> bool:
    for name, sort in _BARE.items():
        path = RelativePath((name,)) if directory is None else directory / name
        node = store.node(checkpoint, path)
        if node is None or node.sort is not sort:
            return False
    return True
