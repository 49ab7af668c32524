"""Sandbox policy: validation, visible system paths, and protection of names in workspaces.

A mount point cannot be renamed, removed or replaced. Each protected name is therefore bind-mounted
over itself read-only, and so is each parent directory with its own mode: otherwise the parent could
be moved aside and a new one created. A name that does not exist needs a placeholder to mount on: an
empty directory, which git ignores, except for files that git itself reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from posixpath import normpath
from typing import Final

from holdfast.confine.failures import SandboxRequestUnfit
from holdfast.confine.model import ENVIRONMENT as ENVIRONMENT
from holdfast.confine.model import PROTECTED as PROTECTED
from holdfast.confine.model import Network as Network
from holdfast.confine.model import ResourceLimits as ResourceLimits
from holdfast.confine.model import SandboxPolicy as SandboxPolicy
from holdfast.confine.model import Strength as Strength

SECRETS: Final = ("*KEY*", "*TOKEN*", "*SECRET*", "*PASS*", "*CREDENTIAL*", "*AUTH*", "*COOKIE*")
OF_THE_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/etc", "/proc", "/dev", "/sys", "/boot")


def checked(policy: SandboxPolicy) -> SandboxPolicy:
    """The same policy, if a sandbox can keep it; otherwise SandboxRequestUnfit says why not."""
    for path in (*policy.readable, *policy.writable, *policy.hidden):
        _check_path(path)
    for path in policy.writable:
        if is_within(path, OF_THE_SYSTEM):
            raise SandboxRequestUnfit(reason=f"{path} belongs to the system and stays as it is")
    for name in policy.protected:
        if name.startswith("/") or ".." in name.split("/") or normpath(name) != name:
            raise SandboxRequestUnfit(reason=f"{name!r} is not a name below a directory")
    for root in policy.guarded:
        for path in policy.writable:
            if any(path != root and is_within(path, (f"{root}/{n}",)) for n in policy.protected):
                raise SandboxRequestUnfit(reason=f"{path} is protected below {root}")
    return policy


def allowed_environment(offered: Mapping[str, str], patterns: Iterable[str]) -> dict[str, str]:
    """Of the variables offered, those that a process that is shut in may know."""
    allowed = tuple(patterns)
    return {name: value for name, value in offered.items() if _may_know(name, allowed)}


def is_within(path: str, roots: Iterable[str]) -> bool:
    """Whether a path is one of the others, or lies below one."""
    return any(path == root or path.startswith(f"{root.rstrip('/')}/") for root in roots)


def _may_know(name: str, allowed: tuple[str, ...]) -> bool:
    if name in allowed:
        return True
    looks_secret = any(fnmatchcase(name.upper(), pattern) for pattern in SECRETS)
    return not looks_secret and any(fnmatchcase(name, pattern) for pattern in allowed)


def _check_path(path: str) -> None:
    if "\0" in path or not path.startswith("/") or normpath(path) != path:
        raise SandboxRequestUnfit(reason=f"{path!r} is not a plain absolute path")
    if path in ("/", "//"):
        raise SandboxRequestUnfit(reason="the whole file system is more than a sandbox can hold")


# What every process that is shut in sees of the system, beside what its policy names.

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# Never all of `/etc`: to root inside, what is meant for root alone would be readable. And no more
# than programs break without: each is a mount, and those are most of what a start costs.
SETTINGS: Final = (
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
)
OF_NETWORKS: Final = ("/etc/gai.conf", "/etc/host.conf", "/etc/hosts", "/etc/resolv.conf")
DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
USER, HOME = "user", "/home/user"
NUMBER: Final = 1000
ACCOUNTS: Final = (
    f"root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n{USER}:x:{NUMBER}:{NUMBER}:{USER}:{HOME}:"
    "/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
)
GROUPS: Final = f"root:x:0:\n{USER}:x:{NUMBER}:\nnogroup:x:65534:\n"
_ADDED: Final = "/opt"  # where packages that are not the system's are put, one directory each


@dataclass(frozen=True, slots=True)
class SystemPaths:
    """Which of these this machine has: what is a link leads to where it says."""

    paths: tuple[str, ...]
    links: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class SearchPath:
    """Where programs are looked for inside, what must be seen for it, and what is not seen."""

    value: str
    readable: tuple[str, ...]
    unseen: tuple[str, ...]


def search_path(value: str, *, seen: Iterable[str]) -> SearchPath:
    """Keep of a PATH what is seen inside, and what is a package of its own.

    A directory anywhere else, such as below a home, is left out and named: showing it would show
    whatever lies beside the programs.
    """
    visible = (*SYSTEM, *seen)
    kept: list[str] = []
    readable: dict[str, None] = {}
    unseen: list[str] = []
    for directory in dict.fromkeys(value.split(":")):
        if not directory.startswith("/") or "/.." in directory:
            continue
        if is_within(directory, visible):
            kept.append(directory)
        elif is_within(directory, (_ADDED,)) and directory != _ADDED:
            kept.append(directory)
            readable["/".join(directory.split("/")[:3])] = None
        else:
            unseen.append(directory)
    return SearchPath(":".join(kept) or "/usr/bin:/bin", tuple(readable), tuple(unseen))


# What git obeys in a repository that has neither submodules nor further worktrees.
_OBEYED: Final = (".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir")
# Placeholders of git files: content that git treats like a missing file.
_FILES_OF_GIT: Final = {
    ".git/commondir": b".\n",
    ".git/config": b"",
    ".git/config.worktree": b"",
}
BARE: Final = ("HEAD", "objects", "refs")
"""Names at the top of a directory by which git takes it for a bare repository.

The placeholder of each is an empty file: git finds no ref in it, and needs directories for two.
"""


class PathType(StrEnum):
    """What is found at a path."""

    ABSENT = "absent"
    DIRECTORY = "directory"
    FILE = "file"
    LINK = "link"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class PathInfo:
    """What is found at a path, and how many names it has."""

    sort: PathType
    names: int = 1


class Protection(StrEnum):
    """How a path is guarded."""

    PINNED = "pinned"  # it stays where it is; below it, things change
    READ_ONLY = "read-only"
    ABSENT = "absent"  # it stays empty, and read-only


@dataclass(frozen=True, slots=True, order=True)
class ProtectedPath:
    """One path that is kept."""

    path: str
    guarding: Protection


ABSENT = PathInfo(PathType.ABSENT)


def candidates(root: str, names: Iterable[str]) -> tuple[str, ...]:
    """Every path that must be looked at to guard the names below a directory, parents first."""
    return tuple(dict.fromkeys(path for name in names for path in _ways(root, name)))


def protected_paths(
    root: str, names: Iterable[str], found: Mapping[str, PathInfo]
) -> tuple[ProtectedPath, ...]:
    """How each name below a directory is kept, parents first; a pinned parent comes once.

    Raises SandboxRequestUnfit for what cannot be kept: a link can be replaced under every mount,
    and a file with a second name can be changed by that one.
    """
    kept: dict[str, Protection] = {}
    for name in names:
        *parents, leaf = _ways(root, name)
        for path in (*parents, leaf):
            guarding = _guarding(path, found.get(path, ABSENT), is_leaf=path == leaf)
            if kept.get(path, Protection.PINNED) is Protection.PINNED:
                kept[path] = guarding
            if guarding is not Protection.PINNED:
                break
    return tuple(ProtectedPath(path, kept[path]) for path in sorted(kept))


def nested_names(
    root: str, names: Iterable[str], repository: str, found: Mapping[str, PathInfo]
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


def bare_names(found: Mapping[str, PathInfo], *, is_below_repository: bool) -> tuple[str, ...]:
    """What to keep at the top of a directory so that git does not take it for a bare repository.

    Git does where `HEAD`, `objects` and `refs` are, and obeys `config` and `hooks` beside them. To
    keep one of the three from being made is enough: `HEAD`, which only git uses, or another one
    in a directory of a repository further up, where `git log HEAD` would take it for a file. Where
    `.git` is a repository, git looks no further.
    """

    def sort(name: str) -> PathType:
        return found.get(name, ABSENT).sort

    if sort(".git") in (PathType.FILE, PathType.LINK) or sort(".git/HEAD") is not PathType.ABSENT:
        return ()
    if sort("HEAD") is PathType.ABSENT and not is_below_repository:
        return ("HEAD",)
    for name in BARE[1:]:
        if sort(name) is not PathType.DIRECTORY:
            return (name,)
    if sort("HEAD") is PathType.ABSENT:
        return ("HEAD",)
    return tuple(name for name in ("HEAD", "config", "hooks") if sort(name) is not PathType.ABSENT)


def placeholder_content(path: str) -> bytes | None:
    """What to put where nothing is: the content of a file, or nothing for an empty directory."""
    last = path.rsplit("/", 2)[1:]
    return _FILES_OF_GIT.get("/".join(last), b"" if last[-1] in BARE else None)


def _ways(root: str, name: str) -> list[str]:
    parts = name.split("/")
    return [f"{root}/{'/'.join(parts[: n + 1])}" for n in range(len(parts))]


def _guarding(path: str, found: PathInfo, *, is_leaf: bool) -> Protection:
    match found.sort:
        case PathType.ABSENT:
            return Protection.ABSENT
        case PathType.LINK:
            raise SandboxRequestUnfit(
                reason=f"{path} is protected, but as a symbolic link it could be replaced"
            )
        case PathType.FILE if found.names > 1:
            raise SandboxRequestUnfit(
                reason=f"{path} is protected, but has a second name by which it could be changed"
            )
        case PathType.DIRECTORY if not is_leaf:
            return Protection.PINNED
        case _:
            return Protection.READ_ONLY
