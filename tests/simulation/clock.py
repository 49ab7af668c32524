"""An asyncio loop whose clock jumps, so that simulated hours pass in milliseconds."""

from __future__ import annotations

import asyncio
import random
import selectors
from collections.abc import Mapping
from typing import Any


class _NeverBlocks(selectors.BaseSelector):
    """Where a real selector would wait, move the loop's clock instead."""

    def __init__(self) -> None:
        self._keys: dict[Any, selectors.SelectorKey] = {}  # Any: as selectors declares it
        self.loop: VirtualTimeLoop | None = None

    def register(
        self, fileobj: Any, events: int, data: Any = None
    ) -> selectors.SelectorKey:  # Any: as selectors declares it
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
            raise RuntimeError(f"deadlock at t={self.loop.now:.3f}: nothing is scheduled")
        self.loop.now += max(timeout, 0.0)
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Runs one simulation from one seed; the seed also shuffles which ready task goes first."""

    def __init__(self, seed: int) -> None:
        self.now = 0.0
        self._chance = random.Random(seed)
        selector = _NeverBlocks()
        super().__init__(selector)
        selector.loop = self
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        if len(self._ready) > 1:
            order = list(self._ready)
            self._chance.shuffle(order)
            self._ready.clear()
            self._ready.extend(order)
        super()._run_once()

    def run_in_executor(self, *_: object) -> Any:  # Any: as asyncio declares it
        raise RuntimeError("a simulation has no threads")
