"""Where an agent works: a directory, and a way to start processes there that survive cuts."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from holdfast.exec import Client, Process
from holdfast.exec.model import Command
from holdfast.world import MARK, sweep


@dataclass(frozen=True, slots=True)
class RunnerEnvironment:
    """What a runner is given: the project as its processes see it, and all that they get.

    `scratch` is a directory for temporary files outside of the project. `session` says whose
    agents they are: nothing of an earlier one is left when the next one begins.
    """

    processes: Client
    root: str
    environment: Mapping[str, str]
    scratch: str
    session: str = ""

    async def start(self, *argv: str, environment: Mapping[str, str] | None = None) -> Process:
        """Start a process whose input is ours, in the project."""
        given = {**self.environment, "TMPDIR": self.scratch, **(environment or {})}
        return await self.processes.start(Command(argv, self.root, given, has_stdin=True))

    @asynccontextmanager
    async def agent(self, *argv: str) -> AsyncGenerator[Process]:
        """Start a process; whatever it started, and was not ended, is ended with the block."""
        mark = f"{self.session}/{secrets.token_hex(8)}"
        try:
            yield await self.start(*argv, environment={MARK: mark})
        finally:
            sweep(mark)

    def clear(self) -> None:
        """End what earlier agents of this session have left, whoever was to end them."""
        if self.session:
            sweep(self.session)
