"""Make standard input and output watchable for an event loop, whatever they are.

asyncio watches pipes, sockets and terminals. A regular file makes it raise ValueError, and epoll
refuses other devices: input from /dev/null would be waited for without end. So a thread copies
between such a file and a pipe, which takes its descriptor (0 or 1) for the length of the block.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import Final

import anyio

_INPUT: Final = 0
_OUTPUT: Final = 1
_READ_BYTES: Final = 1 << 16


def has_stdio() -> bool:
    """Whether both were open when the interpreter started."""
    return sys.__stdin__ is not None and sys.__stdout__ is not None


@asynccontextmanager
async def watchable_stdio() -> AsyncGenerator[None]:
    """Let asyncio connect to `sys.stdin` and `sys.stdout` inside of the block."""
    async with anyio.create_task_group() as tasks:
        with ExitStack() as undone:
            if not _is_watchable(_INPUT):
                file = os.dup(_INPUT)
                end, other = os.pipe()
                _replace(_INPUT, end)
                undone.callback(_put_back_input, file)
                tasks.start_soon(anyio.to_thread.run_sync, _copy, os.dup(file), other)
            if not _is_watchable(_OUTPUT):
                file = os.dup(_OUTPUT)
                other, end = os.pipe()
                _replace(_OUTPUT, end)
                undone.callback(_replace, _OUTPUT, file)
                tasks.start_soon(anyio.to_thread.run_sync, _copy, other, os.dup(file))
            yield
        # The threads end now at the latest: the ends of their pipes that we had are closed.


def _is_watchable(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)


def _replace(descriptor: int, new: int) -> None:
    os.dup2(new, descriptor)
    os.close(new)


def _put_back_input(file: int) -> None:
    # asyncio closes its input at the end of it; then the descriptor may be another file already.
    if sys.stdin.closed:
        os.close(file)
    else:
        _replace(_INPUT, file)


def _copy(source: int, target: int) -> None:
    """Copy until the end of the source, or until the target has no reader, and close both."""
    try:
        with suppress(BrokenPipeError):
            while data := os.read(source, _READ_BYTES):
                while data:
                    data = data[os.write(target, data) :]
    finally:
        os.close(source)
        os.close(target)
