"""Where a process runs: a draft's place that somebody holds, or plainly this machine.

One process holds a place, and everyone else joins it: processes by its namespaces, files by its
root. Whoever made it may be gone; the holder is found again by its draft.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Self

from holdfast.confine.failures import PlaceLost, PlaceStuck
from holdfast.confine.locking import locked
from holdfast.confine.model import Holder, LivingPlace
from holdfast.confine.records import forget, living_holder, marked_holders
from holdfast.confine.rooted import Rooted
from holdfast.world import SystemProcess, signal_exactly, system_process

_KINDS = ("user", "mnt", "pid")


class Place:
    """Namespaces for processes to enter, in order, and a root for files to be reached from.

    Without a holder it is the machine itself, and there is nothing to enter.
    """

    def __init__(
        self, files: Rooted, namespaces: tuple[int, ...] = (), holder: Holder | None = None
    ) -> None:
        self.holder = holder
        self.namespaces = namespaces
        self._files = files
        self._life: int | None = None

    @classmethod
    def plain(cls) -> Self:
        """This machine itself."""
        return cls(Rooted.on_machine())

    @classmethod
    def held_by(cls, holder: Holder) -> Self:
        """The place of a holder; raises PlaceLost if that one is gone."""
        with ExitStack() as undone:
            try:
                life = os.pidfd_open(holder.pid)
                undone.callback(os.close, life)
                namespaces: list[int] = []
                for kind in _KINDS:
                    namespaces.append(os.open(f"/proc/{holder.pid}/ns/{kind}", os.O_RDONLY))
                    undone.callback(os.close, namespaces[-1])
                root = os.open(f"/proc/{holder.pid}/root", os.O_PATH | os.O_DIRECTORY)
                undone.callback(os.close, root)
            except (FileNotFoundError, ProcessLookupError, PermissionError) as error:
                if isinstance(error, PermissionError) and _is_there(holder):
                    raise  # else its number is another's now, and perhaps another user's
                raise PlaceLost(directory=holder.directory) from error
            place = cls(Rooted(root), tuple(namespaces), holder)
            place._life = life
            # All that was opened was opened of this very process if it is still there now.
            if place.is_lost or not _is_there(holder):
                raise PlaceLost(directory=holder.directory)
            undone.pop_all()
        return place

    @property
    def is_lost(self) -> bool:
        """Whether the holder is gone, and with it everyone inside."""
        return self._life is not None and _has_ended(self._life, 0.0)

    @property
    def files(self) -> Rooted:
        """The files of this place; raises PlaceLost rather than write to what nobody sees."""
        if self.holder is not None and self.is_lost:
            raise PlaceLost(directory=self.holder.directory)
        return self._files

    @property
    def is_covering(self) -> bool:
        """Whether what is covered is still seen apart: the kernel uncovers what is removed.

        Whoever enters a place that does not cover writes to the project itself.
        """
        if self.holder is None:
            return True
        try:
            return not any(
                os.path.samestat(self.files.look(os.fsencode(path)), os.stat(path))
                for path in (self.holder.project, *self.holder.also)
            )
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Give all descriptors back; the place itself lives on."""
        self._files.close()
        for namespace in self.namespaces:
            os.close(namespace)
        if self._life is not None:
            os.close(self._life)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def find(directory: str | os.PathLike[str]) -> Place | None:
    """The place of a draft, if somebody holds it, whoever made it."""
    if sys.platform != "linux":
        return None
    holder = living_holder(os.path.realpath(directory))
    if holder is None:
        return None
    try:
        return Place.held_by(holder)
    except PlaceLost:
        return None


def end(directory: str | os.PathLike[str], *, patience: float = 10.0) -> None:
    """Kill everyone inside a draft's place and see them gone; nothing stays mounted.

    What is not held is ended already. Raises PlaceStuck if the kernel cannot let go of someone.
    """
    where = os.path.realpath(directory)
    holder = living_holder(where) if sys.platform == "linux" else None
    if holder is not None:
        _kill(holder, patience)
    with locked(where) as lock:  # who makes a place there now writes its own record
        if lock is not None:
            forget(where)


def places() -> Iterator[LivingPlace]:
    """Every place of ours on this machine that somebody holds."""
    if sys.platform != "linux":
        return
    for holder in marked_holders():
        inside = _numbers_inside(holder.pid)
        if inside:
            yield LivingPlace(holder=holder, processes=inside - 1)


def _kill(holder: Holder, patience: float) -> None:
    try:
        life = os.pidfd_open(holder.pid)
    except ProcessLookupError:
        return
    try:
        process = SystemProcess(holder.pid, 0, 0, 0, holder.started, is_dead=False)
        if signal_exactly(process, signal.SIGKILL) and not _has_ended(life, patience):
            raise PlaceStuck(directory=holder.directory, pid=holder.pid, waited=patience)
    finally:
        os.close(life)


def _is_there(holder: Holder) -> bool:
    process = system_process(holder.pid)
    return process is not None and process.started == holder.started


def _has_ended(life: int, patience: float) -> bool:
    """Whether a process has ended, with all of its namespace if it is the first of one."""
    poll = select.poll()
    poll.register(life, select.POLLIN)
    return bool(poll.poll(patience * 1000))


def _numbers_inside(pid: int) -> int:
    """How many processes there are in a place, the holder and those in nested ones included."""
    try:
        return sum(name.isdecimal() for name in os.listdir(f"/proc/{pid}/root/proc"))
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
