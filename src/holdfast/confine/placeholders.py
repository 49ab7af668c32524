"""Keep what stands in for protected names that do not exist, for as long as it is needed.

A mount needs something to be mounted on, and that something is seen by everyone. So it is written
down before it is made, it is shared by all sandboxes that need it, and it is removed after the
last of them, unless somebody has put something into it. Each sandbox has a file of its own here,
which is locked for as long as any of its processes lives: whoever was killed is found by that.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import select
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from holdfast.confine.core.policy import is_within
from holdfast.confine.core.protected import Guard, Guarding, candidates, guards
from holdfast.confine.looking import look
from holdfast.confine.spelling import read_back, spelled
from holdfast.confine.standing import UNKNOWN, Standing, reached
from holdfast.confine.stranded import end_stranded
from holdfast.confine.whereabouts import Whereabouts, remembered

_HOME, _LOCK, _NEEDED, _PATHS = "placeholders", "lock", ".needed", "paths"
_MADE, _MADE_NEXT = "made.json", "made-next.json"
_LEAVING_TRIES, _LEAVING_WAIT = 100, 0.002


class Placeholders:
    """What stands in for names that do not exist, on the machine or in one place.

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
    ) -> tuple[int, list[Guard]]:
        """Guard names below directories, making what is missing; return the sign of life first.

        It is a descriptor, locked until the last copy of it is closed; give one to the sandbox.
        The names are seen from a root directory, whose place must be open meanwhile. An empty file
        stands in for `files`.
        """
        with self._alone(), ExitStack() as undo:
            self._remove_unneeded()
            kept: list[Guard] = []
            for directory, names in wanted.items():
                found = {path: look(path, root=root) for path in candidates(directory, names)}
                kept += guards(directory, names, found)
            alive = self._need(kept)
            undo.callback(os.close, alive)
            made = self._made()
            absent = [guard.path for guard in kept if guard.guarding is Guarding.ABSENT]
            if self._watch is not None and (absent or made):
                self._watch(self._state, os.readlink(f"/proc/self/fd/{alive}"))
            self._write_down(made | dict.fromkeys(absent, UNKNOWN))
            standing = Standing(remembered(self._state) or Whereabouts(), root)
            numbers = {path: standing.make(path, is_file=path in files) for path in absent}
            refused = {path for path, number in numbers.items() if number is None}
            self._write_down(made | {path: n for path, n in numbers.items() if n is not None})
            undo.pop_all()
        return alive, [guard for guard in kept if guard.path not in refused]

    def release(self, alive: int) -> None:
        """Give the sign of life back, and remove what nobody who lives needs.

        Whoever was just heard to have ended may be on its way out still, so it is waited for.
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

    def _need(self, kept: Iterable[Guard]) -> int:
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
