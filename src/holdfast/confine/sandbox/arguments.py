"""Write the arguments of bubblewrap that keep a policy.

Decide which rights Landlock leaves to a process: the lesser way to shut one in.

Landlock knows directories, but no exceptions below them. So where names are protected, each entry
of the directory is granted by itself, and the directory not: nothing new can be made in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from holdfast.confine.failures import SandboxUnavailable
from holdfast.confine.fence import Fence
from holdfast.confine.policy import (
    DEVICES,
    HOME,
    NUMBER,
    OF_NETWORKS,
    SYSTEM,
    Network,
    PathInfo,
    PathType,
    ProtectedPath,
    Protection,
    SandboxPolicy,
    SystemPaths,
    is_within,
)

NEEDED: Final = frozenset({"--args", "--clearenv", "--perms", "--seccomp", "--sync-fd"})
_DIRECTORIES: Final = ("/etc", "/home", "/run", "/var")
_TEMPORARY: Final = ("/tmp", "/var/tmp", HOME, "/dev/shm")
_OF_ITS_OWN: Final = ("--proc", "/proc", "--dev", "/dev")
# What holds the mounts is a file system too, and belongs to the process. And root, even without
# any right, owns the settings of the kernel in `/proc/sys`.
_READ_ONLY_AT_LAST: Final = ("/proc", "/dev", "/")


@dataclass(frozen=True, slots=True)
class Descriptors:
    """The numbers under which bubblewrap finds what it is handed."""

    arguments: int
    filter: int
    alive: int
    accounts: int
    groups: int


class _View(IntEnum):
    """How a path is seen; the later wins where two are for the same path."""

    READ = 0
    WRITE = 1
    KEEP = 2
    HIDE = 3


def arguments(
    policy: SandboxPolicy,
    kept: Iterable[ProtectedPath],
    hidden: Mapping[str, PathInfo],
    *,
    system_paths: SystemPaths,
    descriptors: Descriptors,
    known: frozenset[str],
) -> list[str]:
    """Options of bubblewrap before the command; `known` are those that this version has.

    `hidden` says what is found at each path that must not be seen. The variables and the
    directory of the process are added by `told_of_process`.
    """
    words = [*_namespaces(policy, known), "--seccomp", str(descriptors.filter)]
    words += ["--sync-fd", str(descriptors.alive)]
    for path in system_paths.paths:
        if path in OF_NETWORKS and policy.network is Network.NONE:
            continue
        words += (
            ["--symlink", system_paths.links[path], path]
            if path in system_paths.links
            else _seen(path)
        )
    words += _OF_ITS_OWN
    for path in _DIRECTORIES:
        words += ["--perms", "0755", "--dir", path]
    for path in _TEMPORARY:
        if path in (*policy.readable, *policy.writable):
            continue  # it would be covered at once
        size = ["--size", str(policy.limits.temporary_bytes)] if "--size" in known else []
        words += ["--perms", "0700" if path == HOME else "1777", *size, "--tmpfs", path]
    words += ["--ro-bind-data", str(descriptors.accounts), "/etc/passwd"]
    words += ["--ro-bind-data", str(descriptors.groups), "/etc/group"]
    for _, _, spoken in sorted(_views(policy, kept, hidden)):
        words += spoken
    for path in _READ_ONLY_AT_LAST:
        words += ["--remount-ro", path]
    return words


def told_of_process(variables: Mapping[str, str], directory: str) -> list[str]:
    """Options of bubblewrap for the environment and the working directory."""
    words = ["--clearenv"]
    for name, value in sorted(variables.items()):
        words += ["--setenv", name, value]
    return [*words, "--chdir", directory]


def _namespaces(policy: SandboxPolicy, known: frozenset[str]) -> list[str]:
    words = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    words += ["--unshare-cgroup-try", "--hostname", "sandbox"]
    if policy.network is Network.NONE:
        words.append("--unshare-net")
    if "--disable-userns" in known:
        words.append("--disable-userns")
    words += ["--uid", str(NUMBER), "--gid", str(NUMBER), "--cap-drop", "ALL"]
    return [*words, "--die-with-parent"]


def _views(
    policy: SandboxPolicy, kept: Iterable[ProtectedPath], hidden: Mapping[str, PathInfo]
) -> Iterable[tuple[str, _View, list[str]]]:
    for path in policy.readable:
        if not is_within(path, SYSTEM):
            yield path, _View.READ, _seen(path)
    for path in policy.writable:
        yield path, _View.WRITE, _shared(path)
    for guard in kept:
        is_pinned = guard.guarding is Protection.PINNED
        yield guard.path, _View.KEEP, _shared(guard.path) if is_pinned else _seen(guard.path)
    for path, found in hidden.items():
        around = [other for other in hidden if other != path]
        if not is_within(path, (*policy.readable, *policy.writable)) or is_within(path, around):
            continue
        match found.sort:
            case PathType.ABSENT | PathType.LINK:
                continue  # what a link leads to is hidden by its own path
            case PathType.DIRECTORY:
                covered = ["--perms", "0000", "--tmpfs", path, "--remount-ro", path]
            case _:
                covered = ["--ro-bind", "/dev/null", path]
        yield path, _View.HIDE, covered


def _seen(path: str) -> list[str]:
    return ["--ro-bind", path, path]


def _shared(path: str) -> list[str]:
    return ["--bind", path, path]


ABI_LEAST: Final = 4  # since when it knows networks
_ABI_OF_DEVICES, _ABI_OF_SCOPES = 5, 6

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_FIRST_ABI: Final = (1 << 13) - 1
_REFER: Final = 1 << 13
_TCP: Final = 0b11
_SCOPES: Final = 0b11  # abstract sockets, signals

_ON_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_READ: Final = _EXECUTE | _READ_FILE | _READ_DIR


def fence(
    policy: SandboxPolicy,
    kept: Iterable[ProtectedPath],
    children: Mapping[str, Mapping[str, PathInfo]],
    *,
    system_paths: SystemPaths,
    abi: int,
) -> Fence:
    """The fence that keeps a policy, as far as Landlock of this version can.

    `children` says what stands in each writable directory below which something is kept, and in
    each pinned one. Raises SandboxUnavailable for a policy that hides something in what it shows.
    """
    if abi < ABI_LEAST:
        raise SandboxUnavailable(reason=f"Landlock is too old here (version {abi})")
    for path in policy.hidden:
        if is_within(path, (*policy.readable, *policy.writable)):
            raise SandboxUnavailable(reason=f"Landlock cannot hide {path}")
    guarding = {guard.path: guard.guarding for guard in kept}
    files = _handled(abi)
    grants = dict.fromkeys((*system_paths.paths, "/proc", *policy.readable), _READ)
    grants |= dict.fromkeys(DEVICES, _READ_FILE | _WRITE_FILE)
    if policy.network is Network.NONE:
        grants = {path: rights for path, rights in grants.items() if path not in OF_NETWORKS}
    for root in policy.writable:
        grants |= _writable(root, guarding, children, files)
    return Fence(
        files=files,
        network=_TCP if policy.network is Network.NONE else 0,
        scopes=_SCOPES if abi >= _ABI_OF_SCOPES else 0,
        grants=tuple(sorted((path, rights & files) for path, rights in grants.items())),
    )


def _writable(
    directory: str,
    guarding: Mapping[str, Protection],
    children: Mapping[str, Mapping[str, PathInfo]],
    every: int,
) -> dict[str, int]:
    if not any(is_within(path, (directory,)) for path in guarding):
        return {directory: every}
    granted = {directory: _READ}
    for path, found in children.get(directory, {}).items():
        if guarding.get(path) is Protection.PINNED:
            granted |= _writable(path, guarding, children, every)
        elif path in guarding:
            continue
        elif found.sort is PathType.DIRECTORY:
            granted[path] = every
        elif found.sort is PathType.FILE:
            granted[path] = every & _ON_FILES
    return granted


def _handled(abi: int) -> int:
    """Every right on files that this version knows: what it does not know, it cannot forbid."""
    rights = _FIRST_ABI | _REFER | _TRUNCATE
    return rights | _IOCTL_DEV if abi >= _ABI_OF_DEVICES else rights
