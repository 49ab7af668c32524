"""A draft's place: the namespaces and merged root in which its processes run.

Exactly one holder process per draft keeps the namespaces alive; it holds an flock in the draft's
directory, taken before the overlay is mounted, because a second mount of the same upper layer
breaks the first. Every other process joins: processes by setns, file operations by the descriptor
of the merged root. The creator may be gone; `find` locates the holder through the draft.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Self

from holdfast.confine.failures import PlaceLost, PlaceStuck
from holdfast.confine.model import Holder, LivingPlace, PlaceSpec
from holdfast.confine.place.files import MergedRootFiles
from holdfast.confine.place.holder import MARK
from holdfast.world import (
    SystemProcess,
    disk_failure,
    environment_of,
    signal_exactly,
    system_process,
    system_processes,
)

# Know who holds a place: by the record in the draft, and by the mark of the holder.

_NAME = "holder.json"
_MARK = MARK.encode() + b"="


def living_holder(directory: str) -> Holder | None:
    """The holder of a draft, if it lives; also one whose record was lost."""
    holder = recorded_holder(directory)
    if holder is None and os.path.exists(directory):
        return next((each for each in marked_holders() if each.directory == directory), None)
    return holder


def recorded_holder(directory: str) -> Holder | None:
    """The holder that the record of a draft names, if it lives."""
    try:
        holder = Holder.of(_read(Path(directory, _NAME).read_text("ascii")))
    except (OSError, ValueError):
        return None
    # A moved or copied directory contains the record of the original's place.
    is_its_own = holder is not None and holder.directory == directory
    return holder if is_its_own and holder is not None and _lives(holder) else None


def marked_holders() -> Iterator[Holder]:
    """Every living holder of our own user on this machine, by its mark."""
    try:
        yield from _marked()
    except OSError as error:
        raise disk_failure(error, path="/proc") from error


def _marked() -> Iterator[Holder]:
    for process in system_processes():
        if process.is_dead:
            continue
        for variable in environment_of(process.pid):
            if variable.startswith(_MARK) and _is_holder_of_ours(process.pid):
                with suppress(ValueError):
                    data = _read(os.fsdecode(variable.removeprefix(_MARK)))
                    yield from _whole(data, process.pid)


def mark_of(spec: PlaceSpec, since: float) -> str:
    """What the holder of such a place shows, from before it has a number."""
    said = {"directory": spec.directory, "project": spec.project, "also": spec.also}
    return json.dumps({"version": 1, **said, "since": since})


def record(mark: str, pid: int) -> Holder | None:
    """Write down in the draft's directory who holds it; None if that one is gone already."""
    holder = next(_whole(_read(mark), pid), None)
    if holder is not None:
        path = Path(holder.directory, _NAME)
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(holder.plain()), encoding="ascii")
        draft.replace(path)
    return holder


def forget(directory: str) -> None:
    """Remove the record of a holder that is gone; for those who have the lock."""
    for name in (_NAME, "holder.new"):
        try:
            Path(directory, name).unlink(missing_ok=True)
        except OSError as error:
            raise disk_failure(error, path=directory) from error


def _lives(holder: Holder) -> bool:
    if (holder.boot, holder.namespace) != (_boot(), _namespace()):
        return False
    process = system_process(holder.pid)
    return process is not None and not process.is_dead and process.started == holder.started


def _whole(mark: dict[str, object], pid: int) -> Iterator[Holder]:
    process = system_process(pid)
    if process is not None and not process.is_dead:
        found = {"pid": pid, "started": process.started}
        holder = Holder.of({**mark, **found, "boot": _boot(), "namespace": _namespace()})
        if holder is not None:
            yield holder


def _read(text: str) -> dict[str, object]:
    data: Any = json.loads(text)  # Any: it may be anything
    return data if isinstance(data, dict) else {}  # pyright: ignore[reportUnknownVariableType]  # see above


def _is_holder_of_ours(pid: int) -> bool:
    """Whether it is what the mark says: anyone inside may have copied its words."""
    try:
        lines = Path(f"/proc/{pid}/status").read_bytes().splitlines()
    except OSError:
        return False
    fields = {name: values.split() for name, _, values in (line.partition(b":") for line in lines)}
    is_first = len(fields[b"NSpid"]) > 1 and fields[b"NSpid"][-1] == b"1"
    return is_first and int(fields[b"Uid"][1]) == os.geteuid()


@cache
def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


@cache
def _namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


# The lock of a draft: who has it may make its place, and the holder keeps it.

LOCK_NAME = "lock"


@contextmanager
def locked(directory: str, *, is_new: bool = False) -> Generator[int | None]:
    """A descriptor that holds the lock; None if another process holds it or no lock file exists.

    A process that inherits the descriptor shares the lock, until all copies are closed.
    """
    try:
        lock = _locked(os.path.join(directory, LOCK_NAME), os.O_CREAT if is_new else 0)
    except FileNotFoundError:
        lock = None
    try:
        yield lock
    finally:
        if lock is not None:
            os.close(lock)


def _locked(path: str, makes: int) -> int | None:
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CLOEXEC | makes, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Who failed to make a place may have removed the file while we waited to open it.
            if os.path.exists(path) and os.path.samestat(os.fstat(lock), os.stat(path)):
                return lock
            os.close(lock)
        except BlockingIOError:
            os.close(lock)
            return None


_KINDS = ("user", "mnt", "pid")


class Place:
    """Namespaces for processes to enter, in order, and a root for files to be reached from.

    Without a holder it is the machine itself, and there is nothing to enter.
    """

    def __init__(
        self, files: MergedRootFiles, namespaces: tuple[int, ...] = (), holder: Holder | None = None
    ) -> None:
        self.holder = holder
        self.namespaces = namespaces
        self._files = files
        self._life: int | None = None

    @classmethod
    def plain(cls) -> Self:
        """This machine itself."""
        return cls(MergedRootFiles.on_machine())

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
            place = cls(MergedRootFiles(root), tuple(namespaces), holder)
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
    def files(self) -> MergedRootFiles:
        """The files of this place; raises PlaceLost rather than write to an unmounted view."""
        if self.holder is not None and self.is_lost:
            raise PlaceLost(directory=self.holder.directory)
        return self._files

    @property
    def is_covering(self) -> bool:
        """Whether what is covered is still seen apart: the kernel uncovers what is removed.

        A process that enters a place without an overlay writes to the project itself.
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
    """The place of a draft, if it has a living holder; any process may have made it."""
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

    A place without a holder has ended already. Raises PlaceStuck if a process cannot be reaped.
    """
    where = os.path.realpath(directory)
    holder = living_holder(where) if sys.platform == "linux" else None
    if holder is not None:
        _kill(holder, patience)
    with locked(where) as lock:  # who makes a place there now writes its own record
        if lock is not None:
            forget(where)


def places() -> Iterator[LivingPlace]:
    """All places of this user on this machine that have a living holder."""
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
