"""What every process that is shut in sees of the system, beside what its policy names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from holdfast.confine.core.policy import is_within

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
class Ground:
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
