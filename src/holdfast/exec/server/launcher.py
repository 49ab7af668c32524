"""Turn a start request into a process spec for the keeper: plain, in a place, in a sandbox."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from holdfast.confine import (
    PROTECTED,
    SYSTEM,
    MergedRootFiles,
    NamespaceFiles,
    Network,
    Place,
    ProcessEntry,
    SandboxPolicy,
    Strength,
    prepare_sandbox,
    strength_within,
)
from holdfast.exec.failures import StartFailed
from holdfast.exec.keeper.client_loop import ProcessSpec, TerminalSize
from holdfast.exec.ports import PlaceFiles
from holdfast.exec.server.model import StartAsked
from holdfast.exec.server.places import root_of
from holdfast.exec.server.sandbox_request import (
    RequestedSandbox,
    SandboxSurroundings,
    confinement,
    may_read,
    may_write,
)

# Directories that a sandbox replaces, that would let root escape, or that are never needed.
_NOT_SHOWN = frozenset(
    {b"bin", b"boot", b"dev", b"etc", b"lib", b"lib32", b"lib64", b"libx32", b"lost+found", b"proc"}
    | {b"run", b"sbin", b"sys", b"tmp", b"usr"}
)
# Of these a sandbox has some entries of its own, so the others are shown one by one.
_SHOWN_BY_ENTRY = (b"home", b"var")
_OF_ITS_OWN = {b"home": frozenset[bytes](), b"var": frozenset({b"lock", b"run", b"tmp"})}
_LEADER = "/usr/bin/setsid"


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """Environment and state directory of the server."""

    environment: Mapping[str, str]
    state: Path


@dataclass(slots=True)
class Launch:
    """A spec that is ready to start; `close` it when its process has exited or did not start."""

    order: ProcessSpec
    strength: Strength | None = None
    lacks: tuple[str, ...] = ()  # what the sandbox does not do that it should
    undo: ExitStack = field(default_factory=ExitStack, repr=False)

    def close(self) -> None:
        """Remove the sandbox; blocks until its mounts are released."""
        self.undo.close()


def plain_order(
    key: str, asked: StartAsked, cwd: bytes, variables: Mapping[str, str]
) -> ProcessSpec:
    """Return the spec for a process on the machine itself."""
    return ProcessSpec(
        key=key,
        argv=asked.argv,
        cwd=cwd.decode("utf-8", "surrogateescape"),
        env=variables,
        arg0=asked.arg0,
        terminal=TerminalSize(asked.rows, asked.cols) if asked.tty else None,
        pipe_stdin=asked.pipe_stdin,
    )


def prepared(
    order: ProcessSpec, asked: StartAsked, place: Place, own: ServerInfo, state: Path
) -> Launch:
    """Return the spec for a place, with a sandbox if requested; blocks.

    Raises `StartFailed` for a missing program or directory, and the failures of `shut_in`.
    """
    confined = _confinement(asked.sandbox, place, own)
    if confined is None and place.holder is None:
        return Launch(order)
    _refuse_missing(place.files, order)
    argv = (order.argv[0] if order.arg0 is None else order.arg0, *order.argv[1:])
    if confined is None:
        program = _located(place.files, order)
        way = ProcessEntry(argv, order.env, order.cwd, program, namespaces=place.namespaces)
        return Launch(replace(order, argv=argv, arg0=None, way=way))
    _located(place.files, order)
    return _shut_in(order, confined, place, state)


def gated(place: Place, sandbox: Mapping[str, object] | None, own: ServerInfo) -> PlaceFiles:
    """Return the file operations of a place, restricted by a sandbox request."""
    files, confined = place.files, _confinement(sandbox, place, own)
    if confined is None:
        return files
    here = surroundings(place, own)
    settled = replace(
        confined,
        readable=_settled(files, confined.readable),
        writable=_settled(files, confined.writable),
        unguarded=_settled(files, confined.unguarded),
        hidden=_settled(files, confined.hidden),
    )

    def gate(path: bytes, writes: bool) -> None:
        name = os.fsdecode(path)
        if not (may_write(settled, name) if writes else may_read(settled, name, here)):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    return NamespaceFiles(files, gate)


def _confinement(
    sandbox: Mapping[str, object] | None, place: Place, own: ServerInfo
) -> RequestedSandbox | None:
    return None if sandbox is None else confinement(sandbox, surroundings(place, own))


def surroundings(place: Place, own: ServerInfo) -> SandboxSurroundings:
    """Return what a sandbox request refers to in a place; the server's state is hidden there."""
    files = place.files

    def exists(path: str) -> bool:
        try:
            files.look(os.fsencode(path), follow=False)
        except OSError:
            return False
        return True

    return SandboxSurroundings(
        system=SYSTEM,
        protected=PROTECTED,
        shown=tuple(os.fsdecode(path) for path in _shown(files)),
        temporary=own.environment.get("TMPDIR") or "/tmp",
        hidden=() if place.holder else (str(own.state.resolve()),),
        exists=exists,
    )


def _shown(files: MergedRootFiles) -> list[bytes]:
    """Return the directories to mount in a sandbox that may read everything; each costs a mount."""
    found: list[bytes] = []
    for name in files.directories(b"/", but=_NOT_SHOWN):
        path = b"/" + name
        if name in _SHOWN_BY_ENTRY:
            found += [path + b"/" + each for each in files.directories(path, but=_OF_ITS_OWN[name])]
        else:
            found.append(path)
    return found


def _shut_in(order: ProcessSpec, confined: RequestedSandbox, place: Place, state: Path) -> Launch:
    """Wrap a command in a sandbox, through `setsid`, so that it leads its own session.

    Otherwise a signal to the command would end the sandbox around it.
    """
    is_led = strength_within(place.namespaces) is Strength.FULL and os.path.exists(_LEADER)
    leading = (_LEADER, *(("--ctty",) if order.terminal else ()))
    argv = (*leading, *order.argv) if is_led else order.argv
    plain = ProcessEntry(
        argv,
        order.env,
        order.cwd,
        argv[0],
        # The numbers that the keeper gives it, so that nothing else gets them.
        files={-1: 0, -2: 1, -3: 2},
        namespaces=place.namespaces,
    )
    with ExitStack() as undo:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        with root_of(place) as root:
            shut = prepare_sandbox(plain, _policy(confined), state=state, root=root)
        undo.callback(shut.close)
        carried = {source: target for source, target in shut.entry.files.items() if source >= 0}
        way = replace(shut.entry, files=carried)
        told = replace(
            order,
            argv=tuple(way.argv),
            env=way.env,
            cwd=way.cwd,
            arg0=None,
            way=way,
            is_led=is_led,
        )
        return Launch(told, shut.strength, shut.lacks, undo.pop_all())


def _policy(confined: RequestedSandbox) -> SandboxPolicy:
    """Return the sandbox policy; only environment variables that look secret are removed."""
    return SandboxPolicy(
        readable=confined.readable,
        writable=confined.writable,
        unguarded=confined.unguarded,
        hidden=confined.hidden,
        protected=confined.protected,
        network=Network.HOST if confined.has_network else Network.NONE,
        environment=("*",),
    )


def _settled(files: MergedRootFiles, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Resolve symlinks in paths; missing paths stay as they are."""
    found: dict[str, None] = {}
    for path in paths:
        try:
            found[os.fsdecode(files.resolve(os.fsencode(path)))] = None
        except OSError:
            found[path] = None
    return tuple(found)


def _refuse_missing(files: MergedRootFiles, order: ProcessSpec) -> None:
    try:
        is_directory = stat.S_ISDIR(files.look(os.fsencode(order.cwd)).st_mode)
        number = errno.ENOTDIR
    except OSError as error:
        is_directory, number = False, error.errno or errno.EIO
    if not is_directory:
        reason = f"{order.cwd}: {os.strerror(number).lower()}"
        raise StartFailed(command=order.argv[0], reason=reason)


def _located(files: MergedRootFiles, order: ProcessSpec) -> str:
    """The file that a command names, by its own PATH and seen from its directory in its place."""
    name = order.argv[0]
    if "/" in name:
        return name
    number = errno.ENOENT
    for place in order.env.get("PATH", os.defpath).split(":"):
        file = os.path.join(order.cwd, place, name)
        try:
            mode = files.look(os.fsencode(file)).st_mode
        except OSError:
            continue
        if stat.S_ISREG(mode) and mode & 0o111:
            return file
        if stat.S_ISREG(mode):
            number = errno.EACCES
    raise StartFailed(command=name, reason=os.strerror(number).lower())
