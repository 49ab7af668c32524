"""Placeholders: mount points for protected names that do not exist.

A bind mount needs an existing target, which is visible outside of the sandbox. Life cycle:

    record in made.json ──▶ create ──▶ shared by sandboxes ──▶ remove after the last one, if empty

Each sandbox has a lease file that it keeps locked while any of its processes lives, so leases of
killed sandboxes are recognized by their free lock. Recording comes before creating: after a crash
every placeholder is on record.

Caveats:
- A draft may be visible through several mounts: its place, and former places that still have open
  descriptors. Each caches lookups, and a root that outlives its place leads to the project itself.
  So existence is read from the upper layer, and removal goes through the current place, or through
  the layer if there is no place.
- The first process of a sandbox waits for bubblewrap and sets PR_SET_PDEATHSIG only afterwards. If
  bubblewrap is killed in between, that process waits forever and keeps the lease locked;
  `end_stranded` ends it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import select
import signal
import stat
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from holdfast.confine.failures import PlaceLost, SandboxFailed
from holdfast.confine.filesystem import beneath, path_info, read_back, spelled
from holdfast.confine.place.locations import LayerLocations, remembered
from holdfast.confine.place.place import find, locked
from holdfast.confine.policy import (
    ProtectedPath,
    Protection,
    candidates,
    is_within,
    placeholder_content,
    protected_paths,
)
from holdfast.confine.sandbox.leftovers import MARK
from holdfast.world import SystemProcess, signal_exactly, system_processes

UNKNOWN: Final = 0  # the number of what was written down, and perhaps made

_REFUSED: Final = (errno.EACCES, errno.EPERM, errno.EROFS)
_UNSEEN: Final = (errno.ENOENT, errno.ESTALE)
_SETTLED: Final = (errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST)
_WHITEOUT: Final = stat.S_IFCHR  # a device of number 0: to an overlay, that something was removed


@dataclass(frozen=True, slots=True)
class PlaceholderRoot:
    """Access to placeholders: through a root if the place is open, else through its layers."""

    where: LayerLocations
    root: int | None

    def make(self, path: str, *, is_file: bool = False) -> int | None:
        """Put something where nothing is; None where that is refused, to the process too.

        For a name of which nothing is known it is a directory, unless a file is wanted.

        Return its number, which is that of the layer: each mount may give another.
        """
        name, content = beneath(path, self.root), placeholder_content(path)
        if content is None and is_file:
            content = b""
        try:
            if content is None:
                os.mkdir(name, 0o755 | MARK, dir_fd=self.root)
            else:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
                opened = os.open(name, flags, 0o644 | MARK, dir_fd=self.root)
                try:
                    os.write(opened, content)
                finally:
                    os.close(opened)
        except OSError as error:
            if error.errno in _REFUSED:
                return None
            raise SandboxFailed(reason=f"{path} cannot be guarded ({error.strerror})") from error
        with suppress(OSError):
            name, root = self._kept(path)
            return os.stat(name, dir_fd=root, follow_symlinks=False).st_ino
        return UNKNOWN

    def remove(self, path: str, number: int) -> bool:
        """Remove what we made there; False if that has to be tried again.

        What was changed since, or is someone else's, stays, and is not ours any more.
        """
        try:
            name, root = self._kept(path)
            content = placeholder_content(path)
            if content is None and _is_file(name, root):
                content = b""
            if _is_ours(name, root, content, number):
                self._take_away(path, content)
        except OSError as error:
            return error.errno in _SETTLED
        return True

    def _kept(self, path: str) -> tuple[str, int | None]:
        layer = self.where.layer(path)
        return (beneath(path, self.root), self.root) if layer is None else (layer, None)

    def _take_away(self, path: str, content: bytes | None) -> None:
        layer = self.where.layer(path)
        if layer is None or self.root is not None:
            try:
                _take_away(beneath(path, self.root), content, self.root)
                return
            except OSError as error:
                if layer is None or error.errno not in _UNSEEN:
                    raise
        _take_away(layer, content, None)
        if os.path.lexists(path):  # as the overlay would: what it covers stays covered
            os.mknod(layer, _WHITEOUT, os.makedev(0, 0))


@contextmanager
def reached(where: LayerLocations) -> Generator[PlaceholderRoot | None]:
    """Access to the placeholders through the current mount or layer; None if there is neither.

    A place without a holder stays locked until the block ends.
    """
    with ExitStack() as undo:
        yield _reached(where, undo) if where.directory else PlaceholderRoot(where, None)


def _reached(where: LayerLocations, undo: ExitStack) -> PlaceholderRoot | None:
    directory = os.fsdecode(where.directory)
    place = find(directory)
    if place is not None:
        undo.enter_context(place)
        with suppress(PlaceLost):
            if not place.is_covering:  # without an overlay the root is the project itself
                return PlaceholderRoot(where, None)
            root = place.files.open(b"/", os.O_PATH | os.O_DIRECTORY)
            undo.callback(os.close, root)
            return PlaceholderRoot(where, root)
    lock = undo.enter_context(locked(directory))
    is_somebodys = lock is None and os.path.exists(directory)
    return None if is_somebodys else PlaceholderRoot(where, None)


def _is_file(name: str, root: int | None) -> bool:
    return stat.S_ISREG(os.stat(name, dir_fd=root, follow_symlinks=False).st_mode)


def _is_ours(name: str, root: int | None, content: bytes | None, number: int) -> bool:
    status = os.stat(name, dir_fd=root, follow_symlinks=False)
    if not status.st_mode & MARK or number not in (UNKNOWN, status.st_ino):
        return False
    if content is None:
        return stat.S_ISDIR(status.st_mode)
    return stat.S_ISREG(status.st_mode) and content.startswith(_content(name, root))


def _take_away(name: str, content: bytes | None, root: int | None) -> None:
    if content is None:
        os.rmdir(name, dir_fd=root)
    else:
        os.unlink(name, dir_fd=root)


def _content(name: str, root: int | None) -> bytes:
    with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=root), "rb") as file:
        return file.read(64)


def end_stranded(sign: Path) -> int:
    """Kill the first process of a sandbox whose maker is gone; say how many it were."""
    return sum(
        signal_exactly(process, signal.SIGKILL)
        for process in system_processes()
        if not process.is_dead and _is_stranded(process) and _has_open(process.pid, sign)
    )


def _is_stranded(process: SystemProcess) -> bool:
    """Whether it is bubblewrap, the first of a namespace, and not the child of bubblewrap."""
    program = _program(process.pid)
    if os.path.basename(program) != "bwrap" or program == _program(process.parent):
        return False
    try:
        lines = Path(f"/proc/{process.pid}/status").read_text("ascii").splitlines()
    except OSError:
        return False
    numbers = next(line.split()[1:] for line in lines if line.startswith("NSpid:"))
    return len(numbers) > 1 and numbers[-1] == "1"


def _program(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


def _has_open(pid: int, path: Path) -> bool:
    wanted = os.path.realpath(path)
    try:
        names = os.listdir(f"/proc/{pid}/fd")
        return any(os.readlink(f"/proc/{pid}/fd/{name}") == wanted for name in names)
    except OSError:
        return False


_HOME, _LOCK, _NEEDED, _PATHS = "placeholders", "lock", ".needed", "paths"
_MADE, _MADE_NEXT = "made.json", "made-next.json"
_LEAVING_TRIES, _LEAVING_WAIT = 100, 0.002


class Placeholders:
    """The placeholders of the host or of one place.

    `state` is a directory of ours, one for each place, which is remembered there.
    """

    def __init__(self, state: Path, *, watch: Callable[[Path, str], None] | None = None) -> None:
        """`watch` is called with the sign of life before anything is made for it."""
        self._state, self._home = state, state / _HOME
        self._watch = watch

    def hold(
        self,
        wanted: Mapping[str, Sequence[str]],
        *,
        root: int | None,
        files: Collection[str] = (),
    ) -> tuple[int, list[ProtectedPath]]:
        """Guard names below directories, making what is missing; return the sign of life first.

        It is a descriptor, locked until the last copy of it is closed; give one to the sandbox.
        Paths are resolved in `root`, whose place must be open meanwhile. The placeholder of a name
        in `files` is an empty file, of any other name an empty directory.
        """
        with self._alone(), ExitStack() as undo:
            self._remove_unneeded()
            kept: list[ProtectedPath] = []
            for directory, names in wanted.items():
                found = {path: path_info(path, root=root) for path in candidates(directory, names)}
                kept += protected_paths(directory, names, found)
            alive = self._need(kept)
            undo.callback(os.close, alive)
            made = self._made()
            absent = [guard.path for guard in kept if guard.guarding is Protection.ABSENT]
            if self._watch is not None and (absent or made):
                self._watch(self._state, os.readlink(f"/proc/self/fd/{alive}"))
            self._write_down(made | dict.fromkeys(absent, UNKNOWN))
            standing = PlaceholderRoot(remembered(self._state) or LayerLocations(), root)
            numbers = {path: standing.make(path, is_file=path in files) for path in absent}
            refused = {path for path, number in numbers.items() if number is None}
            self._write_down(made | {path: n for path, n in numbers.items() if n is not None})
            undo.pop_all()
        return alive, [guard for guard in kept if guard.path not in refused]

    def release(self, alive: int) -> None:
        """Release a lease, and remove placeholders that no living sandbox needs.

        A process whose end was just reported may still hold the lock briefly, so wait for it.
        """
        with open(f"/proc/self/fd/{alive}", "rb") as sign:
            path = Path(os.readlink(f"/proc/self/fd/{alive}"))
            os.close(alive)
            if not _comes_free(sign) and end_stranded(path):
                _comes_free(sign)
        with self._alone():
            self._remove_unneeded()

    def clean(self) -> bool:
        """Remove what the dead have left behind; False if that has to be tried again."""
        if not self._home.exists():
            return True
        with self._alone():
            for sign in self._home.glob(f"*{_NEEDED}"):
                end_stranded(sign)
            self._remove_unneeded()
            return self._made().keys() <= self._needed()

    @contextmanager
    def _alone(self) -> Generator[None]:
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(self._home / _LOCK, "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _need(self, kept: Iterable[ProtectedPath]) -> int:
        path = self._home / f"{secrets.token_hex(8)}{_NEEDED}"
        with ExitStack() as undo:
            alive = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            undo.callback(os.close, alive)
            undo.callback(path.unlink)
            fcntl.flock(alive, fcntl.LOCK_EX)
            with open(alive, "wb", closefd=False) as sign:
                sign.write(spelled({_PATHS: [guard.path for guard in kept]}))
            undo.pop_all()
        return alive

    def _remove_unneeded(self) -> None:
        made = self._made()
        unneeded = sorted(made.keys() - self._needed(), reverse=True)  # what is inside comes first
        where = remembered(self._state) if unneeded else None
        if where is None:
            return
        with reached(where) as standing:
            if standing is None:
                return
            left = [path for path in unneeded if not standing.remove(path, made[path])]
        # What holds something that is left could not be removed either.
        gone = {path for path in unneeded if not any(is_within(each, (path,)) for each in left)}
        self._write_down({path: n for path, n in made.items() if path not in gone})

    def _needed(self) -> set[str]:
        """What the living need; of the dead, the signs are removed."""
        needed: set[str] = set()
        for file in self._home.glob(f"*{_NEEDED}"):
            with open(file, "rb") as sign:
                if _is_free(sign):
                    file.unlink()
                else:
                    needed.update(read_back(sign.read(), dict[str, list[str]])[_PATHS])
        return needed

    def _made(self) -> dict[str, int]:
        whole = self._home / _MADE
        try:
            if not whole.exists():
                (self._home / _MADE_NEXT).rename(whole)
            return read_back(whole.read_bytes(), dict[str, int])
        except (FileNotFoundError, ValueError):
            return {}  # the first was never written to its end, so nothing was made yet

    def _write_down(self, made: dict[str, int]) -> None:
        if made == self._made():
            return
        following = self._home / _MADE_NEXT
        following.write_bytes(spelled(made))
        # Not over the old one, for which some file systems would wait for the disk: this has to
        # outlive processes, not the machine. In between, the next one is whole.
        (self._home / _MADE).unlink(missing_ok=True)
        following.rename(self._home / _MADE)


def _comes_free(sign: BinaryIO) -> bool:
    for _ in range(_LEAVING_TRIES):
        if _is_free(sign):
            return True
        select.select([], [], [], _LEAVING_WAIT)
    return False


def _is_free(sign: BinaryIO) -> bool:
    try:
        # Shared: the watcher of the sandbox may have heard of its end first, and is not part of it.
        fcntl.flock(sign, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
