"""Read the few files by which git says where else it keeps its data; nothing of git is run."""

from __future__ import annotations

import re
from typing import Final

from holdfast.nouns import PathInvalid, RelativePath

_GITDIR: Final = b"gitdir: "
_SECTION: Final = re.compile(rb"\s*\[\s*([\w.-]+)")
_PATH: Final = re.compile(rb"\s*path\s*=\s*(.*?)\s*$", re.IGNORECASE)


def pointed_to(content: bytes) -> bytes | None:
    """Where a `.git` that is a file says that the repository is; None if it says nothing."""
    if not content.startswith(_GITDIR):
        return None
    return _path(content.removeprefix(_GITDIR))


def common_directory(content: bytes) -> bytes | None:
    """Where a `commondir` says that a worktree shares its data; None if it says nothing."""
    return _path(content)


def submodules(content: bytes) -> tuple[RelativePath, ...]:
    """Where a `.gitmodules` has submodules; what is no path below the project is passed over."""
    found: list[RelativePath] = []
    is_inside = False
    for line in content.splitlines():
        section = _SECTION.match(line)
        if section is not None:
            is_inside = section[1].lower() == b"submodule"
            continue
        spelled = _PATH.match(line) if is_inside else None
        if spelled is not None:
            try:
                found.append(RelativePath.of(_unquoted(spelled[1])))
            except PathInvalid:
                continue
    return tuple(found)


def _path(content: bytes) -> bytes | None:
    path = content.rstrip(b"\r\n")
    return path if path and b"\0" not in path else None


def _unquoted(value: bytes) -> bytes:
    if len(value) > 1 and value.startswith(b'"') and value.endswith(b'"'):
        return re.sub(rb"\\(.)", rb"\1", value[1:-1])
    return value
