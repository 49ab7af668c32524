"""Blocking code in a worker thread: its result, its error, and leaving it behind."""

from __future__ import annotations

import threading

import anyio
import pytest

from holdfast.world import in_worker

pytestmark = pytest.mark.anyio


async def test_the_result_comes_from_another_thread() -> None:
    assert await in_worker(threading.get_ident) != threading.get_ident()


async def test_what_it_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        await in_worker(lambda: 1 // 0)


async def test_it_is_left_behind_when_its_caller_is_cancelled() -> None:
    release, ended = threading.Event(), threading.Event()

    def work() -> None:
        release.wait(60)
        ended.set()

    with anyio.fail_after(30), anyio.move_on_after(0.1):
        await in_worker(work)
    assert not ended.is_set()
    release.set()
    assert ended.wait(60)
