"""Say what a process that is shut in may touch, and refuse what makes no sense."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from posixpath import normpath
from typing import Final

from holdfast.confine.failures import SandboxRequestUnfit

PROTECTED: Final = (
    # What git runs or obeys; `commondir` would make it read another configuration.
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".git/commondir",
    ".git/modules",
    ".git/worktrees",
    # What agents, editors and shells obey as soon as a person enters the directory.
    ".agents",
    ".claude",
    ".codex",
    ".cursor",
    ".devcontainer",
    ".envrc",
    ".gemini",
    ".holdfast",
    ".husky",
    ".idea",
    ".mcp.json",
    ".opencode",
    ".pre-commit-config.yaml",
    ".vscode",
)
ENVIRONMENT: Final = (
    "CI",
    "COLORTERM",
    "COLUMNS",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "LINES",
    "NO_COLOR",
    "PATH",
    "TERM",
    "TZ",
)
SECRETS: Final = ("*KEY*", "*TOKEN*", "*SECRET*", "*PASS*", "*CREDENTIAL*", "*AUTH*", "*COOKIE*")
_OF_THE_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/etc", "/proc", "/dev", "/sys", "/boot")


class Network(StrEnum):
    """Whom a process can reach."""

    NONE = "none"  # itself, at most
    OWN = "own"  # whoever listens in the network that was made for it
    HOST = "host"  # everyone whom we can reach


class Strength(StrEnum):
    """How well a process is shut in."""

    FULL = "full"
    REDUCED = "reduced"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of the machine a process may take."""

    processes: int = 1024
    memory_bytes: int = 8 << 30
    file_bytes: int = 16 << 30
    open_files: int = 8192
    temporary_bytes: int = 2 << 30


@dataclass(frozen=True, slots=True)
class Policy:
    """What a process may touch; what is not named here it does not even see.

    Paths are absolute. `protected` are names below each writable path that stay as they are, also
    when there is nothing of that name yet; `unguarded` are those of the writable paths for which
    that does not hold, such as one for temporary files. A variable reaches the process only if
    `environment` matches its name; one that looks like a secret, only if it is spelt out there.
    """

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    protected: tuple[str, ...] = PROTECTED
    unguarded: tuple[str, ...] = ()
    network: Network = Network.NONE
    has_unix_sockets: bool = False
    environment: tuple[str, ...] = ENVIRONMENT
    limits: Limits = field(default_factory=Limits)
    strength_least: Strength = Strength.REDUCED

    @property
    def guarded(self) -> tuple[str, ...]:
        """The writable paths below which names are protected."""
        return tuple(path for path in self.writable if path not in self.unguarded)


def checked(policy: Policy) -> Policy:
    """The same policy, if a sandbox can keep it; otherwise SandboxRequestUnfit says why not."""
    for path in (*policy.readable, *policy.writable, *policy.hidden):
        _check_path(path)
    for path in policy.writable:
        if is_within(path, _OF_THE_SYSTEM):
            raise SandboxRequestUnfit(reason=f"{path} belongs to the system and stays as it is")
    for name in policy.protected:
        if name.startswith("/") or ".." in name.split("/") or normpath(name) != name:
            raise SandboxRequestUnfit(reason=f"{name!r} is no name below a directory")
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
