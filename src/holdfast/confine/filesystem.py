"""Look at a file system, ours or that of a place, for what a sandbox must know about it."""

from __future__ import annotations

import json
import os
import stat
from functools import cache
from typing import TypeVar

import msgspec

from holdfast.confine.failures import SandboxRequestUnfit
from holdfast.confine.policy import (
    ABSENT,
    OF_NETWORKS,
    SETTINGS,
    SYSTEM,
    PathInfo,
    PathType,
    SystemPaths,
    is_within,
)

_SEEN = ("/usr",)


def path_info(path: str, *, root: int | None) -> PathInfo:
    """What is found at an absolute path, seen from a root directory; links are not followed."""
    try:
        status = os.stat(beneath(path, root), dir_fd=root, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    return PathInfo(_sort(status.st_mode), status.st_nlink)


def directory_info(directory: str, *, root: int | None) -> dict[str, PathInfo]:
    """What is found at each path in a directory."""
    opened = os.open(beneath(directory, root), os.O_RDONLY | os.O_DIRECTORY, dir_fd=root)
    try:
        paths = [f"{directory}/{name}" for name in sorted(os.listdir(opened))]
    finally:
        os.close(opened)
    return {path: path_info(path, root=root) for path in paths}


def resolved(path: str, *, root: int | None) -> str:
    """The same path without links on its way, which a sandbox could not follow.

    Those of our own view are followed. In the view of a place they are refused: they would lead
    to what we see, not to what is seen there.
    """
    if root is None:
        return os.path.realpath(path)
    parts = [part for part in path.split("/") if part]
    for n in range(len(parts)):
        way = "/" + "/".join(parts[: n + 1])
        if path_info(way, root=root).sort is PathType.LINK:
            raise SandboxRequestUnfit(reason=f"{way} is a link, and leads elsewhere in a place")
    return "/" + "/".join(parts)


def beneath(path: str, root: int | None) -> str:
    """An absolute path as the system wants it, with the root's descriptor beside it."""
    return path if root is None else path.lstrip("/") or "."


@cache
def system_paths() -> SystemPaths:
    """What this machine has of what everyone sees."""
    there = [path for path in (*SYSTEM, *SETTINGS, *OF_NETWORKS) if os.path.exists(path)]
    # What leads to something that is seen anyway need not be mounted.
    links = [path for path in there if os.path.islink(path)]
    inside = [path for path in links if is_within(os.path.realpath(path), _SEEN)]
    return SystemPaths(paths=tuple(there), links={path: os.readlink(path) for path in inside})


def _sort(mode: int) -> PathType:
    if stat.S_ISDIR(mode):
        return PathType.DIRECTORY
    if stat.S_ISREG(mode):
        return PathType.FILE
    return PathType.LINK if stat.S_ISLNK(mode) else PathType.OTHER


# Write down what names paths of any bytes, and read it again.

Told = TypeVar("Told")


def spelled(told: object) -> bytes:
    """Encode a value as JSON; paths that are not UTF-8 keep their surrogate escapes."""
    return json.dumps(msgspec.to_builtins(told)).encode("ascii")


def read_back(data: bytes, told: type[Told]) -> Told:
    """Decode JSON to a type; raises ValueError if it does not fit."""
    return msgspec.convert(json.loads(data), told)
