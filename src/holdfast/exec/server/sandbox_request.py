"""Decode Codex sandbox policies into our own terms.

A policy without a counterpart is refused: a sandbox may be stricter than requested, never weaker.
Writable paths follow from the workspace roots alone; neither the working directory of a command nor
an environment variable can widen them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from posixpath import normpath
from typing import Literal

import msgspec

from holdfast.confine.failures import SandboxRequestUnfit
from holdfast.exec.failures import RequestInvalid
from holdfast.exec.file_uri import path_of

_SHARED_TEMPORARY = "/tmp"


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rejects unknown members: one of them may be a required restriction."""


class _Path(_Strict, frozen=True, tag_field="type", tag="path"):
    path: str


class _Glob(_Strict, frozen=True, tag_field="type", tag="glob_pattern"):
    pattern: str


class _Kind(_Strict, frozen=True):
    kind: str
    subpath: str | None = None


class _Special(_Strict, frozen=True, tag_field="type", tag="special"):
    value: _Kind


class _Entry(_Strict, frozen=True):
    path: _Path | _Glob | _Special
    access: Literal["read", "write", "deny", "none"]
    missing_path_behavior: str | None = None


class _Restricted(_Strict, frozen=True, tag_field="type", tag="restricted"):
    entries: tuple[_Entry, ...] = ()
    glob_scan_max_depth: int | None = None


class _Unrestricted(_Strict, frozen=True, tag_field="type", tag="unrestricted"):
    pass


class _Managed(_Strict, frozen=True, tag_field="type", tag="managed"):
    file_system: _Restricted | _Unrestricted
    network: Literal["restricted", "enabled"]


class _Disabled(_Strict, frozen=True, tag_field="type", tag="disabled"):
    pass


class _External(_Strict, frozen=True, tag_field="type", tag="external"):
    network: str = ""


class _Asked(msgspec.Struct, frozen=True, rename="camel"):
    permissions: _Managed | _Disabled | _External
    workspace_roots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSurroundings:
    """What the terms of a request refer to on this machine.

    `system`: visible to every process. `shown`: readable where everything is. `protected`: names
    that stay read-only in every workspace. `temporary`: the temporary directory. `hidden`: files of
    the server. `exists`: tests a path.
    """

    system: tuple[str, ...]
    shown: tuple[str, ...]
    protected: tuple[str, ...]
    temporary: str
    hidden: tuple[str, ...]
    exists: Callable[[str], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedSandbox:
    """What a process may access; `reads_all` if everything that is not hidden may be read.

    Below writable paths that are not `unguarded`, `protected` names stay read-only.
    """

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    unguarded: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    has_network: bool = False
    reads_all: bool = False


def confinement(
    sandbox: Mapping[str, object] | None, here: SandboxSurroundings
) -> RequestedSandbox | None:
    """Decode a request; None if no sandbox, or none of ours, is requested."""
    if sandbox is None:
        return None
    try:
        asked = msgspec.convert(sandbox, _Asked)
    except msgspec.ValidationError as error:
        raise SandboxRequestUnfit(reason=str(error)) from error
    permissions = asked.permissions
    if not isinstance(permissions, _Managed):
        return None
    has_network = permissions.network == "enabled"
    if isinstance(permissions.file_system, _Unrestricted):
        if has_network:
            return None
        raise SandboxRequestUnfit(reason="all files and no network is not a sandbox of ours")
    roots = tuple(_plain(root) for root in asked.workspace_roots)
    reading = _Reading(roots, here)
    for entry in permissions.file_system.entries:
        reading.take(entry)
    return reading.result(has_network=has_network)


def may_read(confined: RequestedSandbox, path: str, here: SandboxSurroundings) -> bool:
    """Whether a file method may read a path, which must be free of symlinks."""
    seen = (*confined.readable, *confined.writable, *here.system)
    return not _is_in(path, confined.hidden) and (confined.reads_all or _is_in(path, seen))


def may_write(confined: RequestedSandbox, path: str) -> bool:
    """Whether a file method may write a path, which must be free of symlinks."""
    guarded = [root for root in confined.writable if root not in confined.unguarded]
    kept = [f"{root}/{name}" for root in guarded for name in confined.protected]
    # A process that may replace a directory may replace the protected names in it.
    is_kept = _is_in(path, kept) or any(_is_in(each, [path]) for each in kept)
    is_kept = is_kept or _is_of_nested(path, guarded, confined.protected)
    is_writable = _is_in(path, confined.writable) and path not in confined.writable
    return is_writable and not is_kept and not _is_in(path, confined.hidden)


class _Reading:
    """Decodes the entries of a request in order."""

    def __init__(self, roots: tuple[str, ...], here: SandboxSurroundings) -> None:
        self._roots, self._here = roots, here
        self._read: list[str] = []
        self._written: list[str] = []
        self._loose: list[str] = []
        self._denied: list[str] = []
        self._reads_all = False

    def take(self, entry: _Entry) -> None:
        if isinstance(entry.path, _Glob):
            raise SandboxRequestUnfit(reason=f"patterns such as {entry.path.pattern!r}")
        if isinstance(entry.path, _Path):
            paths = [_plain(entry.path.path)]
        else:
            if self._took_whole(entry.path.value.kind, entry.access):
                return
            paths = self._paths(entry.path.value)
            if entry.access == "write" and entry.path.value.kind != "project_roots":
                self._loose += paths
        may_lack = entry.missing_path_behavior == "skip"
        for path in paths:
            match entry.access:
                case "read":
                    if not may_lack or self._is_of_interest(path):
                        self._read.append(path)
                case "write":
                    self._written.append(path)
                case _:
                    self._denied.append(path)

    def result(self, *, has_network: bool) -> RequestedSandbox:
        written = dict.fromkeys([*self._loose, *self._written])
        loose = {path for path in self._loose if path not in self._roots}
        # Else the way to a root could be moved aside, and another one be made in its place.
        for path in tuple(written):
            for around in tuple(written):
                loose |= set(_between(around, path))
        guarded = [path for path in written if path not in loose]
        protected = dict.fromkeys(self._here.protected)
        readable: dict[str, None] = {}
        for path in self._read:
            above = [root for root in guarded if path != root and _is_in(path, [root])]
            protected |= dict.fromkeys(path.removeprefix(f"{root}/") for root in above)
            if not above and path not in written:
                readable[path] = None
        hidden = (*self._denied, *self._here.hidden)
        for path in (*readable, *written, *loose):
            if _is_in(path, self._denied):
                raise SandboxRequestUnfit(reason=f"{path} lies in what must not be seen")
        shown = self._here.shown if self._reads_all else ()
        return RequestedSandbox(
            readable=tuple(dict.fromkeys((*shown, *readable))),
            writable=tuple(sorted({*written, *loose})),
            unguarded=tuple(sorted(loose)),
            hidden=tuple(dict.fromkeys(hidden)),
            protected=tuple(protected),
            has_network=has_network,
            reads_all=self._reads_all,
        )

    def _took_whole(self, kind: str, access: str) -> bool:
        """Whether an entry was about all files, or about what every process sees."""
        if kind == "root" and access == "write":
            raise SandboxRequestUnfit(reason="to write everywhere is not to be in a sandbox")
        if kind == "root":
            self._reads_all = self._reads_all or access == "read"
            return True
        return kind == "minimal" and access == "read"

    def _paths(self, value: _Kind) -> list[str]:
        match value.kind:
            case "project_roots":
                if not self._roots:
                    raise SandboxRequestUnfit(reason="no root of a workspace was named")
                below = "" if value.subpath is None else f"/{value.subpath}"
                return [_plain(f"{root}{below}") for root in self._roots]
            case "slash_tmp":
                return [_SHARED_TEMPORARY]
            case "tmpdir":
                return [_plain(self._here.temporary)]
            case kind:
                raise SandboxRequestUnfit(reason=f"nobody here knows what {kind!r} is")

    def _is_of_interest(self, path: str) -> bool:
        """Whether an optional path exists, or must be protected although it does not."""
        return self._here.exists(path) or _is_in(path, self._roots)


def _between(around: str, path: str) -> Iterable[str]:
    """Yield the directories between an ancestor and a path."""
    if path == around or not _is_in(path, [around]):
        return ()
    parts = path.removeprefix(around.rstrip("/")).strip("/").split("/")[:-1]
    return [f"{around}/{'/'.join(parts[: n + 1])}" for n in range(len(parts))]


def _is_of_nested(path: str, guarded: Iterable[str], protected: Iterable[str]) -> bool:
    """Whether git reads the path in a nested repository."""
    if not _is_in(path, guarded):
        return False
    names = [name.removeprefix(".git/") for name in protected if name.startswith(".git/")]
    parts = path.split("/")
    ways = ["/".join(parts[n + 1 :]) for n, part in enumerate(parts) if part == ".git"]
    return any(not way or _is_in(way, names) for way in ways)


def _is_in(path: str, roots: Iterable[str]) -> bool:
    return any(f"{path}/".startswith(f"{root.rstrip('/')}/") for root in roots)


def _plain(path: str) -> str:
    """Return an absolute path from a path or a URI; rejects `..`."""
    if not path.startswith("/"):
        try:
            path = path_of(path).decode()
        except (RequestInvalid, UnicodeDecodeError) as error:
            raise SandboxRequestUnfit(reason=f"{path!r} is no path") from error
    plain = path.rstrip("/") or "/"
    if normpath(plain) != plain or plain == "/":
        raise SandboxRequestUnfit(reason=f"{path!r} is not a plain absolute path")
    return plain
