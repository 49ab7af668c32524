"""Find what a project tells agents in its `AGENTS.md` files; it is data, and bounded."""

from __future__ import annotations

from typing import Final

from holdfast.agent.model import FileSort
from holdfast.agent.ports import Tree, Workspace
from holdfast.failures import Failure
from holdfast.nouns import RelativePath

NAMES: Final = ("AGENTS.md", ".agents/AGENTS.md")
NOTE_BYTES_MAX: Final = 32 * 1024
_ALL_BYTES_MAX: Final = 64 * 1024


async def find_notes(
    workspace: Workspace, inside: RelativePath | None = None
) -> tuple[tuple[str, str], ...]:
    """The notes from the project down to a directory in it, by their paths; the nearest last.

    If there is too much, the nearest are kept; what is cut off says so.
    """
    return await workspace.within(lambda tree: _found(tree, inside))


def _found(tree: Tree, inside: RelativePath | None) -> tuple[tuple[str, str], ...]:
    parts = () if inside is None else inside.parts
    above = [RelativePath(parts[:count]) if count else None for count in range(len(parts) + 1)]
    found: list[tuple[str, str]] = []
    left = _ALL_BYTES_MAX
    for directory in reversed(above):
        for name in reversed(NAMES):
            path = RelativePath.of(name) if directory is None else directory / name
            text = _text(tree, path, min(left, NOTE_BYTES_MAX))
            if text:
                left -= len(text.encode())
                found.append((str(path), text))
    return tuple(reversed(found))


def _text(tree: Tree, path: RelativePath, bytes_max: int) -> str:
    if bytes_max <= 0:
        return ""
    try:
        seen = tree.look(path)
        if seen is None or seen.sort not in (FileSort.FILE, FileSort.LINK):
            return ""
        data = tree.read(path, bytes_max + 1)
    except Failure:  # a link that leads out, or something that is no file
        return ""
    text = data[:bytes_max].decode("utf-8", "replace").removeprefix("\ufeff").strip()
    return f"{text}\n(the rest is left out)" if len(data) > bytes_max and text else text
