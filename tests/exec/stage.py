"""A client and a simulated server in virtual time, for tests of what lies between."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from holdfast.exec.client.client import Client
from holdfast.exec.client.recovery import RecoveryPolicy
from holdfast.exec.model import Command
from tests.simulation.exec_server import SimServer, Traits

POLICY = RecoveryPolicy(window=20.0, answer_longest=5.0)


def prints(count: int) -> Command:
    """A process that says so many lines, with pauses."""
    return Command(("print", str(count)), cwd="/", env={})


def echoes(seconds: float) -> Command:
    """A process that says what it is told, for so long."""
    return Command(("cat", str(seconds)), cwd="/", env={}, has_stdin=True)


@asynccontextmanager
async def stage(
    traits: Traits | None = None, *, unread_bytes_max: int = 2**20
) -> AsyncGenerator[tuple[Client, SimServer]]:
    """Both, connected; they end with the block."""
    async with anyio.create_task_group() as tasks:
        server = SimServer(random.Random(1), tasks, traits or Traits())
        async with Client(server.dial, policy=POLICY, unread_bytes_max=unread_bytes_max) as client:
            yield client, server
        tasks.cancel_scope.cancel()
