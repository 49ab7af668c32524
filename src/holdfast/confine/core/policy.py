"""Say what a process that is shut in may touch, and refuse what makes no sense."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from posixpath import normpath
from typing import Final

from holdfast.confine.failures import SandboxRequestUnfit
from holdfast.confine.model import ENVIRONMENT as ENVIRONMENT
from holdfast.confine.model import PROTECTED as PROTECTED
from holdfast.confine.model import Limits as Limits
from holdfast.confine.model import Network as Network
from holdfast.confine.model import Policy as Policy
from holdfast.confine.model import Strength as Strength

SECRETS: Final = ("*KEY*", "*TOKEN*", "*SECRET*", "*PASS*", "*CREDENTIAL*", "*AUTH*", "*COOKIE*")
OF_THE_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/etc", "/proc", "/dev", "/sys", "/boot")


def checked(policy: Policy) -> Policy:
    """The same policy, if a sandbox can keep it; otherwise SandboxRequestUnfit says why not."""
    for path in (*policy.readable, *policy.writable, *policy.hidden):
        _check_path(path)
    for path in policy.writable:
        if is_within(path, OF_THE_SYSTEM):
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
