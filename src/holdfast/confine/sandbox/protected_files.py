"""Find the files of a workspace that run code by themselves, to protect them in a sandbox.

Beside the names of the policy there are three sorts: existing files of programs (`CHANGE_DENIED`);
files that git runs or reads as configuration, in the repository of the directory (also for a
worktree or a subdirectory), in nested repositories and in the user's home; and, without a
repository, the names that would make the directory a bare one.

Nested repositories are found breadth-first with a bounded number of directories. Results are cached
by the mtime of each directory, so that a series of sandboxes reads only changed directories; each
directory is still stat'ed.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.confine.failures import SandboxRequestUnfit
from holdfast.confine.filesystem import beneath, path_info, read_back, spelled
from holdfast.confine.policy import (
    ABSENT,
    SandboxPolicy,
    bare_names,
    candidates,
    is_within,
    nested_names,
    protected_paths,
)
from holdfast.confine.sandbox.git_config import Obeyed, obeyed_in
from holdfast.nouns import CHANGE_DENIED, escaped

CONFIG_BYTES_MAX: Final = 1 << 20
_OPEN: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_BARE: Final = (".git", ".git/HEAD", "HEAD", "objects", "refs", "config", "hooks")
_OF_THE_MACHINE: Final = "/etc/gitconfig"
_OF_THE_PERSON: Final = (".config/git/config", ".gitconfig")


class ProtectedFiles(NamedTuple):
    """Names to be kept as they are, below a directory, and in sentences what cannot be.

    A missing name gets a placeholder: an empty file for `files`, a directory for others.
    """

    names: tuple[str, ...]
    files: tuple[str, ...]
    unkept: tuple[str, ...]


def obeyed_names(
    directory: str, *, root: int | None, repositories: Sequence[str] = ()
) -> ProtectedFiles:
    """What is to be kept below a directory, with these repositories in it."""
    names = [
        name for name in CHANGE_DENIED if path_info(f"{directory}/{name}", root=root) != ABSENT
    ]
    files: list[str] = []
    unkept: list[str] = []
    above = _repository_above(directory, root)
    worktrees = [directory, *(f"{directory}/{each}" for each in repositories)]
    for each in _obeyed(worktrees if above is None else [above, *worktrees], root):
        if not is_within(each.path, (directory,)):
            continue
        name = each.path[len(directory) + 1 :]
        is_absent = _is_absent(each.path, root)
        # In a place everybody would see what stands in, as a change of the draft; its review marks
        # what git obeys.
        if not name or (is_absent and root is not None):
            unkept.append(f"{each.path} is what git obeys ({each.key}), and could be made")
        elif is_absent is not None:
            names.append(name)
            files += [name] if each.is_configuration else []
    found = {name: path_info(f"{directory}/{name}", root=root) for name in _BARE}
    names += bare_names(found, is_below_repository=above is not None)
    kept: list[str] = []
    for name in dict.fromkeys(names):
        seen = {path: path_info(path, root=root) for path in candidates(directory, (name,))}
        try:
            protected_paths(directory, (name,), seen)
        except SandboxRequestUnfit as unfit:
            unkept.append(unfit.reason)
        else:
            kept.append(name)
    return ProtectedFiles(tuple(kept), tuple(files), tuple(unkept))


def shared_configurations() -> tuple[str, tuple[str, ...]]:
    """The home of the person, and the configuration that git reads in every repository."""
    home = os.path.expanduser("~")
    return home, (_OF_THE_MACHINE, *(f"{home}/{each}" for each in _OF_THE_PERSON))


def read_configuration(path: str, *, root: int | None = None) -> bytes:
    """The content of a configuration file; nothing where it cannot be read."""
    try:
        descriptor = os.open(beneath(path, root), _OPEN, dir_fd=root)
    except (OSError, ValueError):
        return b""
    try:
        return os.read(descriptor, CONFIG_BYTES_MAX)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _is_absent(path: str, root: int | None) -> bool | None:
    """Whether nothing is there; None if the parent is not a readable directory."""
    try:
        return path_info(path, root=root) == ABSENT
    except (OSError, ValueError):
        return None


def _repository_above(directory: str, root: int | None) -> str | None:
    above = os.path.dirname(directory)
    while above != "/":
        if path_info(f"{above}/.git", root=root) != ABSENT:
            return above
        above = os.path.dirname(above)
    return None


def _obeyed(worktrees: Sequence[str], root: int | None) -> tuple[Obeyed, ...]:
    home, shared = shared_configurations()
    read = partial(read_configuration, root=root)
    every = (obeyed_in(each, read, home=home, shared=shared) for each in worktrees)
    return tuple(dict.fromkeys(obeyed for some in every for obeyed in some))


DIRECTORIES_MAX: Final = 500
REPOSITORIES_MAX: Final = 16
_REPOSITORY: Final = ".git"
# Generated in large numbers, and not a place for working with git.
_SKIPPED: Final = frozenset({"node_modules", "__pycache__"})
_SETTLED_NS: Final = 2_000_000_000  # after which a change cannot have the time of the last one
_WORKSPACES_MAX: Final = 64
_MEMORY: Final = "nested.json"


class _Seen(NamedTuple):
    """A directory as it was: which one it is, when it was changed, and what is in it."""

    number: int
    changed_ns: int
    directories: tuple[str, ...]
    is_repository: bool


@dataclass(frozen=True, slots=True)
class Nested:
    """The repositories below a directory, by their paths from there, and whether that is all."""

    repositories: tuple[str, ...]
    is_whole: bool


def find_nested(
    directory: str,
    *,
    root: int | None,
    skipped: Collection[str] = (),
    most: int = DIRECTORIES_MAX,
) -> Nested:
    """The repositories below a directory; links are not followed.

    Of `skipped` absolute paths nothing is looked at, nor of more than so many directories.
    """
    top = os.open(beneath(directory, root), os.O_RDONLY | os.O_DIRECTORY, dir_fd=root)
    try:
        status = os.fstat(top)
        known = _known((status.st_dev, status.st_ino, directory))
        return _walked(top, known, {os.path.relpath(each, directory) for each in skipped}, most)
    finally:
        os.close(top)


class Wanted(NamedTuple):
    """Names to be kept below each directory, and in sentences what cannot be.

    `files` are paths of which an empty file means the same as none.
    """

    names: dict[str, tuple[str, ...]]
    files: Collection[str]
    unkept: tuple[str, ...]


def wanted_names(policy: SandboxPolicy, *, state: Path, root: int | None) -> Wanted:
    """What is to be kept below each directory, nested repositories included, and what cannot be.

    Deeper directories are not scanned, so that large trees do not delay the start.
    """
    wanted = dict.fromkeys(policy.guarded, policy.protected)
    if not any(name.startswith(f"{_REPOSITORY}/") for name in policy.protected):
        return Wanted(wanted, (), ())
    files: list[str] = []
    unkept: list[str] = []
    remembered = _remembered(state)
    for directory in wanted:
        skipped = (*policy.hidden, *policy.unguarded)
        nested = find_nested(directory, root=root, skipped=skipped)
        if not nested.is_whole:
            unkept.append(f"{directory} has too many directories to find all repositories in it")
        kept: list[str] = []
        for repository in dict.fromkeys((*remembered.get(directory, ()), *nested.repositories)):
            if is_within(f"{directory}/{repository}", skipped):
                continue
            try:
                names = _names_to_keep(policy, directory, repository, root)
            except SandboxRequestUnfit as unfit:
                unkept.append(unfit.reason)
                continue
            if names and len(kept) == REPOSITORIES_MAX:
                unkept.append(f"{directory} has more than {REPOSITORIES_MAX} repositories in it")
                break
            if names:
                kept.append(repository)
                wanted[directory] += names
        remembered[directory] = kept
        obeyed = obeyed_names(directory, root=root, repositories=kept)
        wanted[directory] += obeyed.names
        files += [f"{directory}/{each}" for each in obeyed.files]
        unkept += obeyed.unkept
    _remember(state, remembered)
    return Wanted(wanted, files, tuple(escaped(os.fsencode(each)) for each in unkept))


def _names_to_keep(
    policy: SandboxPolicy, directory: str, repository: str, root: int | None
) -> tuple[str, ...]:
    """What is to be kept of a repository, if it is one: SandboxRequestUnfit if it cannot be."""
    every = [f"{repository}/{name}" for name in policy.protected]
    found = {path: path_info(path, root=root) for path in candidates(directory, every)}
    if found[f"{directory}/{repository}/{_REPOSITORY}"] == ABSENT:
        return ()
    names = nested_names(directory, policy.protected, repository, found)
    protected_paths(directory, names, found)
    return names


def _remembered(state: Path) -> dict[str, list[str]]:
    """Repositories protected before: else a sandboxed process could crowd them out."""
    try:
        return read_back((state / _MEMORY).read_bytes(), dict[str, list[str]])
    except (OSError, ValueError):  # it may not even be text
        return {}


def _remember(state: Path, kept: dict[str, list[str]]) -> None:
    kept = {directory: repositories for directory, repositories in kept.items() if repositories}
    if kept != _remembered(state):
        following = state / f"{_MEMORY}-{secrets.token_hex(4)}"
        following.write_bytes(spelled(kept))
        following.rename(state / _MEMORY)


@lru_cache(maxsize=_WORKSPACES_MAX)
def _known(_: tuple[int, int, str]) -> dict[str, _Seen]:
    """What was seen in a workspace the last time."""
    return {}


def _walked(top: int, known: dict[str, _Seen], skipped: Collection[str], most: int) -> Nested:
    found: list[str] = []
    seen: dict[str, _Seen] = {}
    waiting = deque(["."])
    while waiting and len(seen) < most:
        way = waiting.popleft()
        there = _looked_at(top, way, known.get(way))
        if there is None:
            continue
        seen[way] = there
        if way != "." and there.is_repository:
            found.append(way)
        below = there.directories if way == "." else [f"{way}/{each}" for each in there.directories]
        waiting.extend(each for each in below if each not in skipped)
    known.clear()
    known.update(seen)
    return Nested(tuple(found), is_whole=not waiting)


def _looked_at(top: int, way: str, before: _Seen | None) -> _Seen | None:
    """Entries of a directory; None if it is not a directory or not readable."""
    try:
        status = os.stat(way, dir_fd=top, follow_symlinks=False)
        if not stat.S_ISDIR(status.st_mode):
            return None
        if before is not None and before[:2] == (status.st_ino, status.st_mtime_ns):
            return before
        opened = os.open(way, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
    except OSError:
        return None
    directories: list[str] = []
    is_repository = False
    try:
        with os.scandir(opened) as entries:
            for each in entries:
                if each.name == _REPOSITORY:
                    is_repository = True
                elif each.name not in _SKIPPED and each.is_dir(follow_symlinks=False):
                    directories.append(each.name)
    finally:
        os.close(opened)
    # Whatever was changed just now may be changed again without looking any newer.
    is_settled = time.time_ns() - status.st_mtime_ns > _SETTLED_NS
    changed = status.st_mtime_ns if is_settled else -1
    return _Seen(status.st_ino, changed, tuple(directories), is_repository)
