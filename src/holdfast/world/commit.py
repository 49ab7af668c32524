"""Share the cost of making records durable among all who append at the same time.

The first to come leads: it takes all that is pending and writes it as one batch. Those who come
meanwhile are the next batch, and one of them leads it as soon as the disk is free. So there is
no timer, nobody waits for more than the batch before theirs, and the more there is to do the
less each record costs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from copy import copy
from functools import partial

import anyio
import anyio.lowlevel

from holdfast.failures import Failure, boundary
from holdfast.nouns import Cursor
from holdfast.world.core.records import Encoded, encode_record
from holdfast.world.failures import JournalUncertain
from holdfast.world.journal import Journal

Runner = Callable[[Callable[[], int]], Awaitable[int]]
"""Runs work that blocks, and returns what it returned."""

_BATCH_MAX = 1024
_BATCH_BYTES_MAX = 8 * 1024 * 1024


class GroupCommit:
    """Appends to a journal from any number of tasks of one event loop."""

    def __init__(self, journal: Journal, *, run: Runner) -> None:
        self._journal = journal
        self._run = run
        self._next = _Batch()
        self._is_writing = False

    async def append(self, record: object) -> Cursor:
        """Return where the record is once it is on disk; raise what kept it from getting there.

        The record of an appender that is cancelled may be kept.
        """
        data = encode_record(record)
        while self._next.is_full:
            await self._next.woken.wait()
        batch = self._next
        place = batch.add(data)
        while batch.outcome is None:
            if batch.is_led:
                await batch.woken.wait()
            else:
                await self._lead(batch)
        return Cursor(self._journal.log, batch.seq(place))

    async def _lead(self, batch: _Batch) -> None:
        """Write a batch when its turn has come, and tell everyone in it how that went."""
        batch.is_led = True
        if self._is_writing:
            try:
                await batch.turn.wait()
            except anyio.get_cancelled_exc_class():
                batch.is_led = False
                batch.wake()  # one of the others leads
                raise
        self._is_writing, self._next = True, _Batch()
        outcome: int | Failure = JournalUncertain(path=str(self._journal.path))
        try:
            with anyio.CancelScope(shield=True), boundary("journal.append"):
                outcome = await self._run(partial(self._journal.append, batch.records))
        except Failure as failure:
            outcome = failure
        finally:
            batch.outcome = outcome
            batch.wake()
            if len(batch.records) > 1:
                # Those just woken may append again at once: let them into the next batch.
                await anyio.lowlevel.cancel_shielded_checkpoint()
            self._is_writing = False
            self._next.turn.set()


class _Batch:
    """Records that go to the disk together, and the tasks that wait for them."""

    def __init__(self) -> None:
        self.records: list[Encoded] = []
        self.is_led = False
        self.turn = anyio.Event()
        self.woken = anyio.Event()
        self.outcome: int | Failure | None = None
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether whoever comes now has to wait for the next one."""
        return len(self.records) >= _BATCH_MAX or self._bytes >= _BATCH_BYTES_MAX

    def add(self, data: Encoded) -> int:
        """Take a record in, and return its place."""
        self.records.append(data)
        self._bytes += len(data)
        return len(self.records) - 1

    def wake(self) -> None:
        """Make everyone who waits look again."""
        self.woken.set()
        self.woken = anyio.Event()

    def seq(self, place: int) -> int:
        """The number that a record was given, or the failure that kept the batch out."""
        assert self.outcome is not None
        if isinstance(self.outcome, Failure):
            raise copy(self.outcome) from self.outcome  # everyone in the batch raises it
        return self.outcome + place
