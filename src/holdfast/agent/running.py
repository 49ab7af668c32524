"""Follow processes that a model has started to their end, whoever waits meanwhile."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio
from anyio.abc import TaskGroup

from holdfast.agent.core.output import Places, Window, legible, page_of
from holdfast.agent.core.receipts import PAGE_MAX
from holdfast.agent.failures import ToolRefused
from holdfast.agent.ground import Freedom, Ground
from holdfast.exec import Process
from holdfast.exec.model import Exited, Output
from holdfast.failures import Failure
from holdfast.world import companions, sweep

LIFE_LONGEST: Final = 600.0
LIVING_MAX: Final = 16
_REMEMBERED_MAX: Final = 64
_LINGER: Final = 1.0  # that output of descendants is waited for after the end
_END_LONGEST: Final = 5.0
_PAGE_BYTES: Final = 256 * 1024

Watcher = Callable[[bytes], None]
"""Is given each piece of output as it comes; it must be quick."""


class Running:
    """One process that a model has started; what it said is held in bounded memory."""

    def __init__(self, name: str, process: Process, *, mark: str, freedom: Freedom) -> None:
        self.name, self._process = name, process
        self._mark, self._freedom = mark, freedom
        self.window = Window()
        self.status: int | None = None
        self.is_denied = False  # the sandbox may have kept it from something
        self.note = ""  # why it ended, if not by itself
        self.is_over = False
        self.since = self.heard = anyio.current_time()
        self.watcher: Watcher | None = None
        self._places = Places()
        self._stirred = anyio.Event()

    @property
    def total(self) -> int:
        """How many bytes it has said."""
        return self._places.total

    async def follow(self) -> None:
        """Take in what it says until it is over, in time; nothing of it is left then."""
        try:
            with anyio.move_on_after(LIFE_LONGEST) as life:
                await self._hear()
            if life.cancelled_caught:
                self.note = f"ended after {LIFE_LONGEST / 60:g} minutes"
        except Failure as failure:
            self.note = failure.user_message
        finally:
            with anyio.CancelScope(shield=True):
                await self._put_down()
            self.is_over = True
            self._stir()

    async def wait(self, seconds: float) -> None:
        """Return once something came, it is over, or the time is."""
        if not self.is_over:
            with anyio.move_on_after(seconds):
                await self._stirred.wait()

    async def write(self, data: bytes) -> None:
        """Write to its input."""
        await self._process.write(data)

    async def end(self, note: str) -> None:
        """Kill it with all that it has started; return once that is done."""
        if self.is_over:
            return
        self.note = self.note or note
        with anyio.move_on_after(_END_LONGEST, shield=True):
            await self._put_down()
            while not self.is_over:
                await self._stirred.wait()

    async def recall(self, offset: int) -> str:
        """What it said from a place on, as far as that is still kept."""
        place = self._places.before(offset)
        found = bytearray()
        seq, at = place.seq, place.offset
        while at < self.total and len(found) <= PAGE_MAX:
            page = await self._process.recall(after=seq, bytes_max=_PAGE_BYTES)
            if not page.chunks or page.first_retained > seq + 1:
                break
            for chunk in page.chunks:
                found += chunk.data[max(0, offset - at) :]
                at += len(chunk.data)
                seq = chunk.seq
        return self._recalled(page_of(bytes(found), PAGE_MAX), offset)

    def _recalled(self, data: bytes, offset: int) -> str:
        if not data:
            return f"(nothing is kept any more from offset {offset} of {self.total})"
        beyond = offset + len(data)
        more = f"\n… (go on from offset {beyond} of {self.total})" if beyond < self.total else ""
        return legible(data) + more

    async def _hear(self) -> None:
        linger = None
        while True:
            with anyio.move_on_after(linger):
                events = await self._process.receive()
                if not events:
                    return
                for event in events:
                    if isinstance(event, Output):
                        self._take(event)
                    elif isinstance(event, Exited):
                        self.status, self.is_denied = event.status, event.sandbox_denied
                        linger = _LINGER
                self._stir()
                continue
            return  # others hold its output, and may for ever

    def _take(self, output: Output) -> None:
        self.heard = anyio.current_time()
        self.window.feed(output.data)
        self._places.note(output.seq, len(output.data))
        if self.watcher is not None:
            self.watcher(output.data)

    async def _put_down(self) -> None:
        with suppress(Failure), anyio.move_on_after(_END_LONGEST):
            await self._process.terminate()  # also what is left of its group
        if self._freedom is Freedom.OPEN:
            sweep(self._mark)

    def _stir(self) -> None:
        self._stirred.set()
        self._stirred = anyio.Event()


class Shells:
    """All processes of a session that a model has started."""

    def __init__(self, ground: Ground, tasks: TaskGroup) -> None:
        self._ground, self._tasks = ground, tasks
        self._all: dict[str, Running] = {}
        self._count = 0

    @property
    def living(self) -> list[Running]:
        """Those that are not over."""
        return [each for each in self._all.values() if not each.is_over]

    async def start(self, line: str, freedom: Freedom, *, has_stdin: bool) -> Running:
        """Start a command line; it is followed until it ends."""
        if len(self.living) >= LIVING_MAX:
            names = ", ".join(each.name for each in self.living)
            raise ToolRefused(reason=f"{LIVING_MAX} processes are running; kill one of: {names}")
        mark = self._ground.new_mark()
        command = self._ground.shell(line, freedom, mark=mark, has_stdin=has_stdin)
        process = await self._ground.processes.start(command)
        self._count += 1
        running = Running(f"sh{self._count}", process, mark=mark, freedom=freedom)
        self._all[running.name] = running
        self._forget_some()
        self._tasks.start_soon(running.follow)
        return running

    def find(self, name: str) -> Running:
        """The process of that name."""
        if name not in self._all:
            known = ", ".join(each.name for each in self.living) or "none is running"
            raise ToolRefused(reason=f"there is no process {name!r} ({known})")
        return self._all[name]

    async def end_all(self, note: str) -> None:
        """Kill all that are not over."""
        async with anyio.create_task_group() as tasks:
            for running in self.living:
                tasks.start_soon(running.end, note)

    def _forget_some(self) -> None:
        over = [name for name, each in self._all.items() if each.is_over]
        for name in over[: max(0, len(self._all) - _REMEMBERED_MAX)]:
            del self._all[name]


@asynccontextmanager
async def shells_in(ground: Ground) -> AsyncGenerator[Shells]:
    """Processes for a model; none is left at the end of the block."""
    async with companions() as tasks:
        shells = Shells(ground, tasks)
        try:
            yield shells
        finally:
            with anyio.CancelScope(shield=True):
                await shells.end_all("the session ended")
