"""Decide which rights Landlock leaves to a process: the lesser way to shut one in.

Landlock knows directories, but no exceptions below them. So where names are protected, each entry
of the directory is granted by itself, and the directory not: nothing new can be made in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from holdfast.confine.core.fence import Fence
from holdfast.confine.core.ground import DEVICES, OF_NETWORKS, Ground
from holdfast.confine.core.policy import Network, Policy, is_within
from holdfast.confine.core.protected import Found, Guard, Guarding, Sort
from holdfast.confine.failures import SandboxUnavailable

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
    policy: Policy,
    kept: Iterable[Guard],
    children: Mapping[str, Mapping[str, Found]],
    *,
    ground: Ground,
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
    grants = dict.fromkeys((*ground.paths, "/proc", *policy.readable), _READ)
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
    guarding: Mapping[str, Guarding],
    children: Mapping[str, Mapping[str, Found]],
    every: int,
) -> dict[str, int]:
    if not any(is_within(path, (directory,)) for path in guarding):
        return {directory: every}
    granted = {directory: _READ}
    for path, found in children.get(directory, {}).items():
        if guarding.get(path) is Guarding.PINNED:
            granted |= _writable(path, guarding, children, every)
        elif path in guarding:
            continue
        elif found.sort is Sort.DIRECTORY:
            granted[path] = every
        elif found.sort is Sort.FILE:
            granted[path] = every & _ON_FILES
    return granted


def _handled(abi: int) -> int:
    """Every right on files that this version knows: what it does not know, it cannot forbid."""
    rights = _FIRST_ABI | _REFER | _TRUNCATE
    return rights | _IOCTL_DEV if abi >= _ABI_OF_DEVICES else rights
