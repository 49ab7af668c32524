"""An asyncio loop whose clock jumps, so that simulated hours pass in milliseconds."""

from __future__ import annotations

import asyncio
import random
import selectors
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_TURNS_MAX = 100_000


class Deadlock(RuntimeError):
    """Every task waits, and nothing is scheduled that could wake one."""


class Livelock(RuntimeError):
    """Tasks keep running, and time does not pass."""


class _Numbered(asyncio.Task[Any]):  # Any: tasks of every result
    """A task that knows how many there were before it, in this simulation."""

    number = 0


class _NeverBlocks(selectors.BaseSelector):
    """Where a real selector would wait, move the loop's clock instead."""

    def __init__(self) -> None:
        self._keys: dict[Any, selectors.SelectorKey] = {}  # Any: as selectors declares it
        self.loop: VirtualTimeLoop | None = None

    def register(
        self,
        fileobj: Any,  # Any: as selectors declares it
        events: int,
        data: Any = None,
    ) -> selectors.SelectorKey:
        number = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        self._keys[fileobj] = key = selectors.SelectorKey(fileobj, number, events, data)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:  # Any: as selectors declares it
        return self._keys.pop(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:  # Any: as selectors declares it
        return self._keys

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert self.loop is not None
        if timeout is None:
            waiting = "\n  ".join(self.loop.waiting()) or "nobody"
            raise Deadlock(f"at t={self.loop.now:.3f} nothing is scheduled; waiting:\n  {waiting}")
        self.loop.pass_time(max(timeout, 0.0))
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Runs one simulation from one seed; the seed also shuffles which ready task goes first."""

    def __init__(self, seed: int) -> None:
        self.now = 0.0
        self.trace = 0  # a checksum of when how many tasks were ready
        self._turns_still = 0
        self._chance = random.Random(seed)
        selector = _NeverBlocks()
        super().__init__(selector)
        selector.loop = self
        self._clock_resolution = 1e-9
        self._tasks_started = 0
        self.set_task_factory(self._start)

    def time(self) -> float:
        return self.now

    def pass_time(self, seconds: float) -> None:
        """Move the clock; a loop that turns for long without doing so has lost its way."""
        self.now += seconds
        self._turns_still = 0 if seconds else self._turns_still + 1
        if self._turns_still > _TURNS_MAX:
            self._turns_still = 0  # so that the tasks can still be cancelled
            turning = "\n  ".join(self.waiting())
            raise Livelock(f"at t={self.now:.3f} time stands still; running:\n  {turning}")

    def waiting(self) -> list[str]:
        """Who waits for what: each task by name, with the calls it is in."""
        tasks = sorted(asyncio.all_tasks(self), key=lambda task: task.get_name())
        return [f"{task.get_name()}: {' → '.join(_calls(task.get_coro()))}" for task in tasks]

    def _start(
        self, _loop: object, coro: Any, **rest: Any
    ) -> _Numbered:  # Any: as asyncio declares
        task = _Numbered(coro, loop=self, **rest)
        self._tasks_started += 1
        task.number = self._tasks_started
        return task

    def _run_once(self) -> None:
        ready = self._ready  # type: ignore[attr-defined]  # asyncio has no public door to it
        self.trace = zlib.crc32(f"{self.now!r} {len(ready)}".encode(), self.trace)
        if len(ready) > 1:
            # Those who keep tasks in sets wake them in the order of their addresses, so the seed
            # must not begin from the order in which they became ready.
            order = sorted(ready, key=_number)
            self._chance.shuffle(order)
            ready.clear()
            ready.extend(order)
        super()._run_once()  # type: ignore[misc]  # nor to this

    def run_in_executor(self, *_: object) -> Any:  # Any: as asyncio declares it
        raise RuntimeError("a simulation has no threads")


def _number(handle: Any) -> int:  # Any: a handle has no public door to its callback
    task = getattr(handle._callback, "__self__", None)
    return task.number if isinstance(task, _Numbered) else 0


def _calls(awaited: object) -> Iterator[str]:
    """The calls that a suspended coroutine is in, outermost first."""
    while (frame := getattr(awaited, "cr_frame", None)) is not None:
        yield f"{frame.f_code.co_name} ({Path(frame.f_code.co_filename).name}:{frame.f_lineno})"
        awaited = getattr(awaited, "cr_await", None)
