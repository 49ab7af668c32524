"""Conversion of paths from models to paths in the project."""

from __future__ import annotations

from posixpath import normpath

from holdfast.agent.failures import ToolRefused
from holdfast.nouns import PathInvalid, RelativePath


def named(word: str, root: str) -> RelativePath:
    """Return the path of a file in the project; raises ToolRefused for paths outside."""
    found = place_of(word, root)
    if found is None:
        raise ToolRefused(reason="that is the project itself, and no file in it")
    return found


def place_of(word: str, root: str) -> RelativePath | None:
    """Return the path of a file or directory in the project, None for its root.

    Absolute paths are paths as the agent's processes see them.
    """
    plain = normpath(_below(word, root)) if word else "."
    if plain == ".":
        return None
    if plain == ".." or plain.startswith("../"):
        raise ToolRefused(reason=f"{_shown(word)} is outside of the project")
    return _read(plain)


def _below(word: str, root: str) -> str:
    if not word.startswith("/"):
        return word
    plain = normpath(word)
    if plain == root:
        return "."
    if not plain.startswith(f"{root.rstrip('/')}/"):
        raise ToolRefused(
            reason=f"{_shown(word)} is outside of the project; give a path below {root}"
        )
    return plain.removeprefix(f"{root.rstrip('/')}/")


def _read(plain: str) -> RelativePath:
    """Parse a path; accepts the escaped form in which unusual names are displayed."""
    try:
        try:
            return RelativePath.from_text(plain)
        except PathInvalid:
            return RelativePath.of(plain)
    except PathInvalid as invalid:
        raise ToolRefused(reason=f"{invalid.path} is no path: {invalid.reason}") from invalid


def _shown(word: str) -> str:
    return repr(word[:200])
