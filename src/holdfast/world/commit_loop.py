"""Share the cost of making records durable among all who append at the same time.

The first to come sends what there is to the disk at once. Those who come meanwhile are the next
batch, which goes as soon as the disk is free. So there is no timer, nobody waits for more than
the batch before theirs, and the more there is to do the less each record costs.

No task leads a batch: what a cancelled appender leaves behind goes its way without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import copy
from functools import partial

from holdfast.failures import Failure
from holdfast.nouns import Cursor
from holdfast.world.core.records import Encoded, encode_record
from holdfast.world.journal import Journal

Outcome = int | Failure
"""What work returned, or what kept it from returning."""

Runner = Callable[[Callable[[], int], Callable[[Outcome], None]], None]
"""Runs work that blocks, and later, in the event loop, says once how it ended; never raises."""

_BATCH_MAX = 1024
_BATCH_BYTES_MAX = 8 * 1024 * 1024


class GroupCommit:
    """Appends to a journal from any number of tasks of one event loop."""

    def __init__(self, journal: Journal, *, run: Runner) -> None:
        self._journal = journal
        self._run = run
        self._is_writing = False
        self._next = _Batch()
        self._has_room = asyncio.Event()
        self._has_room.set()

    async def append(self, record: object) -> Cursor:
        """Return where the record is once it is on disk; raise what kept it from getting there.

        The record of an appender that is cancelled may be kept.
        """
        data = encode_record(record)
        while not self._has_room.is_set():
            await self._has_room.wait()
        # Each has a future of its own: to cancel who waits for one cancels it for all who do.
        told: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._next.add(data, told)
        if not self._is_writing:
            self._begin()
        elif self._next.is_full:
            self._has_room.clear()
        outcome = await told
        if isinstance(outcome, Failure):
            raise copy(outcome) from outcome  # everyone in the batch raises it
        return Cursor(self._journal.log, outcome)

    def _begin(self) -> None:
        """Send the next batch to the disk, if anyone is in it."""
        batch = self._next
        self._is_writing = bool(batch.records)
        if self._is_writing:
            self._next = _Batch()
            self._has_room.set()
            self._run(partial(self._journal.append, batch.records), partial(self._end, batch))

    def _end(self, batch: _Batch, outcome: Outcome) -> None:
        """Tell everyone in a batch how it went, and go on with the next one."""
        for place, told in enumerate(batch.told):
            if not told.done():  # whoever waited may be gone
                told.set_result(outcome if isinstance(outcome, Failure) else outcome + place)
        # Those just woken may append again at once: let them into the next batch.
        asyncio.get_running_loop().call_soon(self._begin)


class _Batch:
    """Records that go to the disk together, each with the future that its appender waits for."""

    __slots__ = ("_bytes", "records", "told")

    def __init__(self) -> None:
        self.records: list[Encoded] = []
        self.told: list[asyncio.Future[Outcome]] = []
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether whoever comes now has to wait for the next one."""
        return len(self.records) >= _BATCH_MAX or self._bytes >= _BATCH_BYTES_MAX

    def add(self, data: Encoded, told: asyncio.Future[Outcome]) -> None:
        """Take a record in, and who is to be told about it."""
        self.records.append(data)
        self.told.append(told)
        self._bytes += len(data)
