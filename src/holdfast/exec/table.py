"""All processes of a session by id, and who is told the news of which."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from holdfast.exec.core.answers import read_event
from holdfast.exec.failures import ProcessExists
from holdfast.exec.feed import Feed
from holdfast.exec.model import Closed
from holdfast.exec.wire import ReadParams, ReadResult
from holdfast.failures import Failure, ungrouped
from holdfast.rpc import Connection
from holdfast.rpc.failures import RequestTimedOut
from holdfast.rpc.model import Notification

_READS_MAX = 64
_SPARE = 64


class Table:
    """The feeds of one session; an id belongs to one of them until that is over."""

    def __init__(self) -> None:
        self._feeds: dict[str, Feed] = {}
        self._swept_at = 0

    def add(self, feed: Feed) -> None:
        """Follow one more process, under an id that no other has."""
        before = self._feeds.get(feed.process)
        if before is not None and not before.is_over:
            raise ProcessExists(process=feed.process)
        if len(self._feeds) >= self._swept_at:  # seldom: each time all of them are looked at
            self._feeds = {id_: each for id_, each in self._feeds.items() if not each.is_over}
            self._swept_at = 2 * len(self._feeds) + _SPARE
        self._feeds[feed.process] = feed

    def remove(self, feed: Feed) -> None:
        """Follow a process no longer; whoever has its id since then is left alone."""
        if self._feeds.get(feed.process) is feed:
            del self._feeds[feed.process]

    def put(self, batch: Sequence[Notification], size: int) -> None:  # noqa: ARG002  # as a Follower
        """Take what one read of the connection yielded."""
        for notification in batch:
            told = read_event(notification.method, notification.params)
            if told is not None and (feed := self._feeds.get(told[0])) is not None:
                feed.live(told[1])
                if isinstance(told[1], Closed) and feed.is_over:
                    self.remove(feed)

    def end(self, failure: Failure) -> None:
        """Take no offence at the end of a connection: another one follows."""

    def fail(self, failure: Failure) -> None:
        """Tell all of them that nothing will follow."""
        for feed in self._feeds.values():
            feed.fail(failure)

    async def catch_up(self, connection: Connection, *, timeout: float) -> None:
        """Read all that was missed; what is wrong with one process fails only that one."""

        async def ask(params: ReadParams) -> ReadResult:
            async with places:
                return await connection.request(
                    "process/read", params, timeout=timeout, result=ReadResult
                )

        async def catch_up(feed: Feed) -> None:
            try:
                await feed.catch_up(ask)
                await feed.tell_taken(connection)
            except Failure as failure:
                if connection.failure is not None or isinstance(failure, RequestTimedOut):
                    raise
                if feed.is_started:  # else whoever starts it finds out what became of it
                    feed.fail(failure)

        places = anyio.CapacityLimiter(_READS_MAX)
        with ungrouped():
            async with anyio.create_task_group() as tasks:
                for feed in self._feeds.values():
                    tasks.start_soon(catch_up, feed)
