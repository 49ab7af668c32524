"""Make rings of the files of streams that pour, once the keeper holds their positions."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress

from holdfast.exec.failures import KeeperLost
from holdfast.exec.kept import Kept
from holdfast.exec.retention import Retained
from holdfast.exec.stream_file import ring_for

RING_TASK = "exec ring"

_PART = 4  # of the limit: who has put out so much will go on
_LIMIT_LEAST = 16 * 2**20  # below it a ring would take more than what it keeps


class Rings:
    """The streams of one process whose files still grow.

    To write over pages that are there costs half of what new ones do. But a file that grows tells
    a server by its length how much the last one had moved into it when it was killed; for a ring
    the position of a descriptor does, which must be the keeper's before anything is moved by it.
    Where the keeper or the disk refuses, the file goes on growing.
    """

    def __init__(self, retained: Retained, kept: Kept | None, bytes_max: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._retained, self._kept = retained, kept
        self._enough, self._ring = bytes_max // _PART, ring_for(bytes_max)
        can_be = kept is not None and kept.can_hold and bytes_max >= _LIMIT_LEAST and self._ring > 0
        self._growing = set(range(len(retained.streams))) if can_be else set[int]()
        self._tasks: set[asyncio.Task[None]] = set()

    def look(self) -> None:
        """Make rings of what has grown enough; the keeper is asked meanwhile."""
        for stream in tuple(self._growing):
            if self._retained.files[stream].size > self._enough:
                self._growing.discard(stream)
                if self._kept is not None and not self._retained.files[stream].ring:
                    task = self._loop.create_task(self._make(stream, self._kept), name=RING_TASK)
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Make no more."""
        self._growing.clear()
        for task in self._tasks:
            task.cancel()

    async def _make(self, stream: int, kept: Kept) -> None:
        with suppress(OSError, KeeperLost):
            position = self._retained.files[stream].opened_again()
            is_taken = False
            try:
                name = self._retained.streams[stream]
                # What was kept when it began must be where a ring has it, too.
                if (
                    await kept.hold_position(name, position)
                    and self._retained.files[stream].size <= self._ring
                ):
                    self._retained.begin_ring(stream, self._ring, position)
                    is_taken = True
            finally:
                if not is_taken:
                    os.close(position)
