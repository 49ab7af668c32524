"""A keeping in a directory of its own, whose keeper and processes end with the test."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import anyio

from holdfast.exec.keeper.client_loop import KeeperClient, KeptProcess, ProcessSpec, TerminalSize
from holdfast.exec.model import Output
from holdfast.exec.storage.retention_loop import BYTES_MAX, Retention

PATH = "/usr/bin:/bin"

_LOOKS, _LOOK_AGAIN = 4000, 0.005


@asynccontextmanager
async def keeping_in(state: Path) -> AsyncIterator[KeeperClient]:
    """A keeping whose keeper is killed at the end, by its own number."""
    keeper = await KeeperClient.open(state)
    try:
        yield keeper
    finally:
        with anyio.CancelScope(shield=True):
            if keeper.lost is None:
                for kept in await keeper.adopt():
                    await kept.forget()
                await keeper.close()
            with suppress(ProcessLookupError):
                os.kill(keeper.pid, signal.SIGKILL)
            await keeper.close()


@contextmanager
def open_files_max(most: int) -> Generator[None]:
    """Have, and hand on, this limit of open files for a while."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def no_more_open_files(*, free: int = 0) -> Generator[None]:
    """Have room for no more descriptors than these."""
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    fillers: list[int] = []
    with open_files_max(highest + 1 + free):
        try:
            with suppress(OSError):
                while True:
                    fillers.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
            for filler in fillers[len(fillers) - free :]:
                os.close(filler)
            del fillers[len(fillers) - free :]
            yield
        finally:
            for filler in fillers:
                os.close(filler)


def shell(
    key: str,
    script: str,
    *,
    terminal: TerminalSize | None = None,
    pipe_stdin: bool = False,
    env: Mapping[str, str] | None = None,
) -> ProcessSpec:
    return ProcessSpec(
        key=key,
        argv=("sh", "-c", script),
        cwd="/",
        env=env or {"PATH": PATH},
        terminal=terminal,
        pipe_stdin=pipe_stdin,
    )


def retained(state: Path, kept: KeptProcess, *, bytes_max: int = BYTES_MAX) -> Retention:
    return Retention.open(state / "processes" / kept.key, kept, bytes_max=bytes_max)


async def closed(retention: Retention) -> Retention:
    """The same retention, once its process has ended and said all."""
    while not retention.is_closed:
        await news(retention)
    return retention


async def said(retention: Retention, wanted: bytes) -> None:
    """Wait until these bytes are in its output."""
    while wanted not in output(retention):
        await news(retention)


async def news(retention: Retention) -> None:
    told = anyio.Event()
    retention.listen(told.set)
    with anyio.fail_after(60):
        await told.wait()
    retention.unlisten(told.set)


def output(retention: Retention, stream: str = "", *, after: int = 0) -> bytes:
    return b"".join(
        event.data
        for event in retention.events(after, None)
        if isinstance(event, Output) and stream in ("", event.stream)
    )


async def until(claim: Callable[[], bool]) -> None:
    """Wait for what only looking can tell."""
    for _ in range(_LOOKS):
        if claim():
            return
        await anyio.sleep(_LOOK_AGAIN)
    raise TimeoutError


def status_of(pid: int) -> dict[str, str]:
    """What the system says about a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def append(path: Path, data: bytes) -> None:
    with open(path, "ab") as file:
        file.write(data)


async def ended(kept: KeptProcess) -> int:
    """How a process ended, once it has."""
    told = anyio.Event()
    kept.on_exit(lambda _: told.set())
    with anyio.fail_after(60):
        await told.wait()
    assert kept.exit_status is not None
    return kept.exit_status
