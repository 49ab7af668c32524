"""Mark the changes of a draft that programs run by themselves.

Beside its name, two things make git run or obey a file: a configuration that names it
(`core.hooksPath`, `include.path`), and a directory that has all that a bare repository has.
"""

from __future__ import annotations

from functools import cache

from holdfast.confine import obeyed_paths
from holdfast.nouns import RelativePath
from holdfast.workbench.core.tree import NodeSort
from holdfast.workbench.model import Change, Checkpoint, Sort
from holdfast.workbench.showing import Marker, marked_by_name
from holdfast.workbench.standing import Standing
from holdfast.workbench.store import Store

_CONFIG = RelativePath.of(".git/config")
_CONFIG_BYTES_MAX = 1 << 20
_BARE = {b"HEAD": NodeSort.FILE, b"objects": NodeSort.DIRECTORY, b"refs": NodeSort.DIRECTORY}
_WORDS = {
    "core.hooksPath": "git runs the hooks in it (core.hooksPath)",
    "include.path": "git obeys it as configuration (include.path)",
}
_IN_BARE = "git takes the directory for a bare repository, and obeys its configuration and hooks"


def marker_of(store: Store, standing: Standing) -> Marker:
    """What marks the changes of a draft, given the project and the draft as they are."""
    obeyed = {
        path: _WORDS[key]
        for checkpoint in (standing.theirs, standing.ours)
        for path, key in _obeyed(store, checkpoint)
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


def _obeyed(store: Store, checkpoint: Checkpoint) -> list[tuple[RelativePath, str]]:
    """What the configuration of a repository names inside of the project."""
    node = store.node(checkpoint, _CONFIG)
    if node is None or node.sort is not NodeSort.FILE or node.size > _CONFIG_BYTES_MAX:
        return []
    content = b"".join(store.content(node.object))
    found = obeyed_paths(content, directory="/.git", worktree="/")
    return [(RelativePath.of(path[1:]), key) for path, key in found if path.strip("/")]


def _is_bare(store: Store, checkpoint: Checkpoint, directory: RelativePath | None) -> bool:
    for name, sort in _BARE.items():
        path = RelativePath((name,)) if directory is None else directory / name
        node = store.node(checkpoint, path)
        if node is None or node.sort is not sort:
            return False
    return True
