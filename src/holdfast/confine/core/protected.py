"""Decide how names below a writable directory are kept as they are, there or not.

Whatever is mounted cannot be renamed, removed or replaced. So each name is mounted over itself,
read-only, and so is each directory on the way to it, as it was: otherwise its parent could be
moved aside and a new one made. For a name that does not exist, something has to stand in: an
empty directory, which git does not see, but for the files that git itself reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from holdfast.confine.failures import SandboxRequestUnfit

# What git obeys in a repository that has neither submodules nor further worktrees.
_OBEYED: Final = (".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir")
# What stands in for files of git, in the words that mean to git what their absence does.
_FILES_OF_GIT: Final = {
    ".git/commondir": b".\n",
    ".git/config": b"",
    ".git/config.worktree": b"",
}
BARE: Final = ("HEAD", "objects", "refs")
"""Names at the top of a directory by which git takes it for a bare repository.

An empty file stands in for each: git reads no ref in it, and wants directories for the other two.
"""


class Sort(StrEnum):
    """What is found at a path."""

    ABSENT = "absent"
    DIRECTORY = "directory"
    FILE = "file"
    LINK = "link"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Found:
    """What is found at a path, and how many names it has."""

    sort: Sort
    names: int = 1


class Guarding(StrEnum):
    """How a path is guarded."""

    PINNED = "pinned"  # it stays where it is; below it, things change
    READ_ONLY = "read-only"
    ABSENT = "absent"  # it stays empty, and read-only


@dataclass(frozen=True, slots=True, order=True)
class Guard:
    """One path that is kept."""

    path: str
    guarding: Guarding


ABSENT = Found(Sort.ABSENT)


def candidates(root: str, names: Iterable[str]) -> tuple[str, ...]:
    """Every path that must be looked at to guard the names below a directory, parents first."""
    return tuple(dict.fromkeys(path for name in names for path in _ways(root, name)))


def guards(root: str, names: Iterable[str], found: Mapping[str, Found]) -> tuple[Guard, ...]:
    """How each name below a directory is kept, parents first; a pinned parent comes once.

    Raises SandboxRequestUnfit for what cannot be kept: a link can be replaced under every mount,
    and a file with a second name can be changed by that one.
    """
    kept: dict[str, Guarding] = {}
    for name in names:
        *parents, leaf = _ways(root, name)
        for path in (*parents, leaf):
            guarding = _guarding(path, found.get(path, ABSENT), is_leaf=path == leaf)
            if kept.get(path, Guarding.PINNED) is Guarding.PINNED:
                kept[path] = guarding
            if guarding is not Guarding.PINNED:
                break
    return tuple(Guard(path, kept[path]) for path in sorted(kept))


def nested_names(
    root: str, names: Iterable[str], repository: str, found: Mapping[str, Found]
) -> tuple[str, ...]:
    """Of the names that are protected, those to be kept in a repository further down.

    There, what git obeys by itself is kept whether it is there or not, and the rest only if it is:
    each name costs a mount, at every start.
    """
    below = [(name, f"{repository}/{name}") for name in names]
    return tuple(
        way
        for name, way in below
        if name in _OBEYED or found.get(f"{root}/{way}", ABSENT) != ABSENT
    )


def bare_names(found: Mapping[str, Found], *, is_below_repository: bool) -> tuple[str, ...]:
    """What to keep at the top of a directory so that git does not take it for a bare repository.

    Git does where `HEAD`, `objects` and `refs` are, and obeys `config` and `hooks` beside them. To
    keep one of the three from being made is enough: `HEAD`, which nobody else needs, or another one
    in a directory of a repository further up, where `git log HEAD` would take it for a file. Where
    `.git` is a repository, git looks no further.
    """

    def sort(name: str) -> Sort:
        return found.get(name, ABSENT).sort

    if sort(".git") in (Sort.FILE, Sort.LINK) or sort(".git/HEAD") is not Sort.ABSENT:
        return ()
    if sort("HEAD") is Sort.ABSENT and not is_below_repository:
        return ("HEAD",)
    for name in BARE[1:]:
        if sort(name) is not Sort.DIRECTORY:
            return (name,)
    if sort("HEAD") is Sort.ABSENT:
        return ("HEAD",)
    return tuple(name for name in ("HEAD", "config", "hooks") if sort(name) is not Sort.ABSENT)


def stand_in(path: str) -> bytes | None:
    """What to put where nothing is: the content of a file, or nothing for an empty directory."""
    last = path.rsplit("/", 2)[1:]
    return _FILES_OF_GIT.get("/".join(last), b"" if last[-1] in BARE else None)


def _ways(root: str, name: str) -> list[str]:
    parts = name.split("/")
    return [f"{root}/{'/'.join(parts[: n + 1])}" for n in range(len(parts))]


def _guarding(path: str, found: Found, *, is_leaf: bool) -> Guarding:
    match found.sort:
        case Sort.ABSENT:
            return Guarding.ABSENT
        case Sort.LINK:
            raise SandboxRequestUnfit(
                reason=f"{path} is protected, but as a symbolic link it could be replaced"
            )
        case Sort.FILE if found.names > 1:
            raise SandboxRequestUnfit(
                reason=f"{path} is protected, but has a second name by which it could be changed"
            )
        case Sort.DIRECTORY if not is_leaf:
            return Guarding.PINNED
        case _:
            return Guarding.READ_ONLY
