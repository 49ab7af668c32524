"""Bad habits that a worker can take up, and a write that takes less than all."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from functools import partial
from itertools import count

from holdfast.workbench.transaction import site
from holdfast.workbench.transaction import stage as staging
from holdfast.workbench.transaction.executor import Executor
from holdfast.workbench.transaction.machine import InspectSlot, Step, StepResult


def take_up(habits: tuple[str, ...]) -> None:
    """Have these habits from now on, in this process."""
    for habit in habits:
        word, _, number = habit.partition("-")
        _HABITS[word](int(number or 0))


def _write_short(number: int) -> None:
    """Of the nth write only half is taken."""
    whole, calls = os.write, count(1)

    def write(descriptor: int, data: bytes, /) -> int:
        is_short = next(calls) == number
        return whole(descriptor, memoryview(data)[: (len(data) + 1) // 2] if is_short else data)

    os.write = write


def _leave_unsynced(is_such: Callable[[int], bool], _: int) -> None:
    """Whatever a transaction stages or moves is not synced, if it is such a thing."""
    sync = os.fsync

    def fsync(descriptor: int, /) -> None:
        if not is_such(os.fstat(descriptor).st_mode):
            sync(descriptor)

    os.fsync = fsync


def _leave_files_unsynced(number: int) -> None:
    """Not even a start is made with writing what is staged: that alone saves most of it."""
    _leave_unsynced(stat.S_ISREG, number)
    setattr(staging, "start_writing", lambda _: None)  # noqa: B010  # a bug, planted


def _put_no_marker(_: int) -> None:
    """A transaction is begun and ended without a word about it."""
    setattr(site, "replace_file", lambda *_, **__: None)  # noqa: B010  # a bug, planted


def _check_no_exchange(_: int) -> None:
    """Whatever comes out of the project is taken for what was expected."""
    execute = Executor.execute

    def unchecked(self: Executor, act: Step) -> StepResult:
        return act.operation.before if isinstance(act, InspectSlot) else execute(self, act)

    setattr(Executor, "carry_out", unchecked)  # noqa: B010  # a bug, planted


_HABITS: dict[str, Callable[[int], None]] = {
    "short": _write_short,
    "unsynced_files": _leave_files_unsynced,
    "unsynced_names": partial(_leave_unsynced, stat.S_ISDIR),
    "unmarked": _put_no_marker,
    "unchecked": _check_no_exchange,
}
