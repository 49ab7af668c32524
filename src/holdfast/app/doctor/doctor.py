"""Examine the machine: all checks at once, each in its own time."""

from __future__ import annotations

import os
import platform
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

import anyio
from anyio.streams.memory import MemoryObjectSendStream

from holdfast.app.doctor.model import Finding, Machine, Result, Status
from holdfast.app.doctor.remedies import family_of
from holdfast.failures import Failure, boundary

Look = Callable[[], Awaitable[Finding]]

AT_ONCE_MAX = 6  # each look is a small process; more at once would only make them late


@dataclass(frozen=True, slots=True)
class Check:
    """One question about the machine, under an id that never changes."""

    id: str
    group: str
    title: str
    look: Look
    only_on: str | None = None


async def examine(
    checks: Sequence[Check], machine: Machine, results: MemoryObjectSendStream[Result]
) -> None:
    """Carry out all checks, and hand over each result as soon as it is there."""
    turns = anyio.CapacityLimiter(AT_ONCE_MAX)
    async with results, anyio.create_task_group() as tasks:
        for check in checks:
            tasks.start_soon(partial(_carry_out, check, machine, turns, results.clone()))


async def _carry_out(
    check: Check,
    machine: Machine,
    turns: anyio.CapacityLimiter,
    results: MemoryObjectSendStream[Result],
) -> None:
    async with results, turns:
        begin = anyio.current_time()
        finding = await _find(check, machine)
        duration = anyio.current_time() - begin
        await results.send(Result(check.id, check.group, check.title, finding, duration))


async def _find(check: Check, machine: Machine) -> Finding:
    """A check that breaks is a finding too: it must not hide the others."""
    if check.only_on not in (None, machine.system):
        return Finding(Status.SKIPPED, f"{check.only_on} only; this is {machine.system}")
    try:
        with boundary("doctor"):
            return await check.look()
    except Failure as failure:
        return Finding(Status.FAILED, f"the check itself broke ({failure.message})")


# Which machine this is.


def this_machine() -> Machine:
    """Name the system and its distribution as far as they are known."""
    release = _os_release()
    return Machine(
        system=platform.system(),
        release=platform.release(),
        name=release.get("PRETTY_NAME", ""),
        family=family_of(release.get("ID", ""), release.get("ID_LIKE", "")),
        is_root=os.geteuid() == 0,
    )


def _os_release() -> dict[str, str]:
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}
