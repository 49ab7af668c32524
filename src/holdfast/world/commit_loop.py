"""Group commit: concurrent appends to a journal share one write and one fsync.

    append ──▶ queue ──▶ batch ──▶ write + fsync in a thread ──▶ resolve the futures
                 ▲                          │
                 └── appends meanwhile ◀────┘ the next batch starts when this one is durable

The first append starts a batch at once; appends during its fsync form the next batch. There is no
timer: an append waits for at most the batch before its own, and the cost of an fsync is shared by
more records under load. No task owns a batch, so cancelling an appender does not stop its batch:
its records may become durable although `append` raised the cancellation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from itertools import count, repeat

from holdfast.failures import Failure
from holdfast.nouns import Cursor
from holdfast.world.journal import Journal
from holdfast.world.journal_format import Encoded, encode_record

Outcome = int | Failure
"""What work returned, or what kept it from returning."""

BlockingRunner = Callable[[Callable[[], int], Callable[[Outcome], None]], None]
"""Runs work that blocks, and later, in the event loop, says once how it ended; never raises."""

_BATCH_MAX = 1024
_BATCH_BYTES_MAX = 8 * 1024 * 1024


class GroupCommit:
    """Appends to a journal from any number of tasks of one event loop."""

    def __init__(self, journal: Journal, *, run: BlockingRunner) -> None:
        self._journal = journal
        self._run = run
        self._is_writing = False
        self._records: list[Encoded] = []  # the next batch
        self._waiters: list[asyncio.Future[Outcome] | None] = []  # one per record, None for most
        self._bytes = 0
        self._taken = asyncio.Event()

    async def append(self, *records: object) -> Cursor:
        """Return where the last record is once all are on disk; raise what kept them from it.

        They follow one another there, and all of them are kept or none is. Those of an appender
        that is cancelled may be kept.
        """
        encoded = [encode_record(record) for record in records]
        while len(self._records) >= _BATCH_MAX or self._bytes >= _BATCH_BYTES_MAX:
            self._taken.clear()
            await self._taken.wait()
        # One future per append: cancelling a shared future would cancel it for every appender.
        durable: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._records += encoded
        self._waiters += [*repeat(None, len(encoded) - 1), durable]
        self._bytes += sum(map(len, encoded))
        if not self._is_writing:
            self._begin()
        outcome = await durable
        if isinstance(outcome, Failure):
            raise copy(outcome) from outcome  # everyone in the batch raises it
        return Cursor(self._journal.log, outcome)

    def _begin(self) -> None:
        """Send the next batch to the disk, if there is anything in it."""
        records, waiters = self._records, self._waiters
        self._is_writing = bool(records)
        if self._is_writing:
            self._records, self._waiters, self._bytes = [], [], 0
            self._taken.set()
            self._run(partial(self._journal.append, records), partial(self._end, waiters))

    def _end(self, waiters: list[asyncio.Future[Outcome] | None], outcome: Outcome) -> None:
        """Resolve the futures of a batch, and start the next one."""
        outcomes: Iterator[Outcome] = (
            repeat(outcome) if isinstance(outcome, Failure) else count(outcome)
        )
        for one, found in zip(waiters, outcomes, strict=False):
            if one is not None and not one.done():  # done: the appender was cancelled
                one.set_result(found)
        if len(waiters) > 1 or self._records:
            # The appenders just woken often append again: let their records join the next batch.
            asyncio.get_running_loop().call_soon(self._begin)
        else:
            self._is_writing = False
