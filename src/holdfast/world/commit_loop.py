"""Share the cost of making records durable among all who append at the same time.

The first to come sends what there is to the disk at once. Those who come meanwhile are the next
batch, which goes as soon as the disk is free. So there is no timer, nobody waits for more than
the batch before theirs, and the more there is to do the less each record costs.

No task leads a batch: what a cancelled appender leaves behind goes its way without it.
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
        self._told: list[asyncio.Future[Outcome] | None] = []  # who waits for each of it, if any
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
        # Each has a future of its own: to cancel who waits for one cancels it for all who do.
        told: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._records += encoded
        self._told += [*repeat(None, len(encoded) - 1), told]
        self._bytes += sum(map(len, encoded))
        if not self._is_writing:
            self._begin()
        outcome = await told
        if isinstance(outcome, Failure):
            raise copy(outcome) from outcome  # everyone in the batch raises it
        return Cursor(self._journal.log, outcome)

    def _begin(self) -> None:
        """Send the next batch to the disk, if there is anything in it."""
        records, told = self._records, self._told
        self._is_writing = bool(records)
        if self._is_writing:
            self._records, self._told, self._bytes = [], [], 0
            self._taken.set()
            self._run(partial(self._journal.append, records), partial(self._end, told))

    def _end(self, told: list[asyncio.Future[Outcome] | None], outcome: Outcome) -> None:
        """Tell everyone in a batch how it went, and go on with the next one."""
        outcomes: Iterator[Outcome] = (
            repeat(outcome) if isinstance(outcome, Failure) else count(outcome)
        )
        for one, found in zip(told, outcomes, strict=False):
            if one is not None and not one.done():  # whoever waited may be gone
                one.set_result(found)
        if len(told) > 1 or self._records:
            # Those just woken may append again at once: let them into the next batch.
            asyncio.get_running_loop().call_soon(self._begin)
        else:
            self._is_writing = False
