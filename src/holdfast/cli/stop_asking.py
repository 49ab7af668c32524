"""Ask what servers and keepers hold to end, such that whoever waits for it is told."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio

from holdfast.cli.belongings import address
from holdfast.cli.core.stop_page import Belonging, Sort
from holdfast.cli.exec_dial import TOKEN, Server
from holdfast.cli.exec_processes import end_all
from holdfast.exec.server.token import token_in
from holdfast.failures import Failure
from holdfast.world import SystemProcess, signal_exactly, system_process, system_processes

_GRACE: Final = 5.0  # seconds to end as it likes


def ask_to_end(found: Sequence[Belonging]) -> None:
    """Let the processes of servers end as they like, for as long as that is not long.

    Servers that we can speak to end theirs themselves: they tell whoever waits for them.
    """
    keepers = [each for each in found if each.sort is Sort.KEEPER and each.processes]
    busy = {each.kept for each in keepers}
    servers = [each for each in found if each.sort is Sort.SERVER and each.kept in busy]
    anyio.run(_ask_all, [server for each in servers if (server := _reachable(each)) is not None])
    numbers = {each.pid for each in keepers}
    groups = {each.group for each in system_processes() if each.parent in numbers}
    asked = [each for each in system_processes() if each.group in groups and not each.is_dead]
    deadline = time.monotonic() + _GRACE
    for each in asked:
        signal_exactly(each, signal.SIGTERM)
    for each in asked:
        has_ended(each, deadline - time.monotonic())


def _reachable(found: Belonging) -> Server | None:
    """A server that runs, as one that we can speak to."""
    url, token = address(found.pid), Path(found.kept, TOKEN)
    if url is None:
        return None
    return Server(url, token=token_in(token) if token.exists() else None)


async def _ask_all(servers: Sequence[Server]) -> None:
    async with anyio.create_task_group() as tasks:
        for each in servers:
            tasks.start_soon(_ask, each)


async def _ask(server: Server) -> None:
    with suppress(Failure):  # whoever is left is asked by a signal, and ended with the keeper
        await end_all(server)


def has_ended(process: SystemProcess, patience: float) -> bool:
    """Whether this very process is gone, now or within a time."""
    try:
        life = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return True
    try:
        now = system_process(process.pid)
        if now is None or now.is_dead or now.started != process.started:
            return True
        return bool(select.select([life], [], [], max(0.0, patience))[0])
    finally:
        os.close(life)
