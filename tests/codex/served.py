"""An app-server of ours that misbehaves as told, and a connection with it."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from holdfast.codex import AppServer, Thread
from holdfast.telemetry import Telemetry
from holdfast.telemetry.testing import MemorySink
from holdfast.world import SystemClock
from tests.parts import fake_app_server

Scenario = Mapping[str, Any]  # Any: the language of scenarios is JSON
Acts = list[dict[str, Any]]  # Any: as above
ENV = {"PATH": os.environ.get("PATH", os.defpath)}


class Watched:
    """What telemetry was told."""

    def __init__(self) -> None:
        self.sink = MemorySink()
        self.telemetry = Telemetry([self.sink], clock=SystemClock())

    def of(self, name: str) -> list[dict[str, object]]:
        """The fields of every record of this name."""
        return [dict(record.fields) for record in self.sink.records if record.name == name]

    def names(self) -> set[str]:
        """The names of all records."""
        return {record.name for record in self.sink.records}


@asynccontextmanager
async def serving(
    directory: Path,
    scenario: Scenario,
    **options: Any,  # Any: whatever `connect` takes
) -> AsyncGenerator[AppServer]:
    """Connect with a server that plays a scenario."""
    command = fake_app_server.command(scenario, directory)
    async with AppServer.connect(command=command, cwd=str(directory), env=ENV, **options) as server:
        yield server


@asynccontextmanager
async def talking(
    directory: Path,
    *acts: Mapping[str, object],
    **options: Any,  # Any: whatever `connect` takes
) -> AsyncGenerator[tuple[AppServer, Thread]]:
    """A thread whose turns go as these acts say."""
    scenario = {"on": {"turn/start": [list(acts)]}}
    async with serving(directory, scenario, **options) as server:
        yield server, await server.start_thread(cwd=directory)


def sent(directory: Path, method: str) -> list[dict[str, Any]]:  # Any: JSON
    """The messages of this method that the server got."""
    return [m for m in fake_app_server.received(directory) if m.get("method") == method]


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something is so; whoever waits says how long."""
    while not holds():  # noqa: ASYNC110  # what is waited for has no event of its own
        await anyio.sleep(0.01)
