"""Find git data of a project that lies outside of it, where no draft may write either.

A worktree shares the data of its repository, and a submodule has it in the one that it is part of;
both say so in a file. Only such files are read, each beneath the project. What they name is
believed only if it looks like what it is said to be: the file may be anybody's.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from holdfast.confine import Rooted, is_within
from holdfast.workbench.core.git_files import common_directory, pointed_to, submodules
from holdfast.workbench.failures import WorktreeUncovered
from holdfast.world import disk_failure

_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_BYTES_MAX = 1 << 20
_REPOSITORIES_MAX = 1000


def git_data_elsewhere(project: Path) -> tuple[str, ...]:
    """Directories outside of a project that hold git data of it, none inside of another, sorted.

    Raises WorktreeUncovered if one of them cannot be covered.
    """
    within = os.path.realpath(project)
    found = {each for each in _repositories(within) if not is_within(each, (within,))}
    outermost = sorted(each for each in found if not is_within(each, tuple(found - {each})))
    for each in outermost:
        if is_within(within, (each,)):
            raise WorktreeUncovered(
                project=str(project), outside=each, reason="the project lies inside of it"
            )
    return tuple(outermost)


def _repositories(project: str) -> Iterator[str]:
    """Every repository that a project, or a submodule of it, says it keeps its data in."""
    try:
        root = os.open(project, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise disk_failure(error, path=project) from error
    try:
        for checkout in _checkouts(root):
            where = os.path.join(project, os.fsdecode(checkout))
            yield from _data_of(root, checkout, where)
    finally:
        os.close(root)


def _checkouts(root: int) -> Iterator[bytes]:
    """Where a repository is checked out: at the top, and where its submodules say."""
    ahead = [b""]
    for _ in range(_REPOSITORIES_MAX):
        if not ahead:
            return
        checkout = ahead.pop()
        yield checkout
        said = _read(root, _joined(checkout, b".gitmodules")) or b""
        ahead += [_joined(checkout, path.raw) for path in submodules(said)]


def _data_of(root: int, checkout: bytes, where: str) -> Iterator[str]:
    name = _joined(checkout, b".git")
    content = _read(root, name)
    if content is None:
        if _is_link(root, name):
            yield from _repository(os.path.realpath(os.path.join(where, ".git")))
        return
    pointed = pointed_to(content)
    if pointed is not None:
        yield from _repository(os.path.realpath(os.path.join(where, os.fsdecode(pointed))))


def _repository(directory: str) -> Iterator[str]:
    """A directory of git, and the one that it shares data with."""
    if not os.path.isfile(os.path.join(directory, "HEAD")):
        return
    yield directory
    with suppress(OSError), open(os.path.join(directory, "commondir"), "rb") as file:
        shared = common_directory(file.read(_BYTES_MAX))
        if shared is not None:
            common = os.path.realpath(os.path.join(directory, os.fsdecode(shared)))
            if os.path.isdir(os.path.join(common, "objects")):
                yield common


def _read(root: int, path: bytes) -> bytes | None:
    """What is in a small file below the root, if it is one and no link leads there."""
    try:
        descriptor = Rooted(root).open_without_links(path, _OPEN)
    except OSError:
        return None
    try:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return os.read(descriptor, _BYTES_MAX) if is_file else None
    finally:
        os.close(descriptor)


def _is_link(root: int, path: bytes) -> bool:
    try:
        descriptor = Rooted(root).open_without_links(path, getattr(os, "O_PATH", os.O_RDONLY))
    except OSError:
        return False
    try:
        return stat.S_ISLNK(os.fstat(descriptor).st_mode)
    finally:
        os.close(descriptor)


def _joined(directory: bytes, name: bytes) -> bytes:
    return directory + b"/" + name if directory else name
