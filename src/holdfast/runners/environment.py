"""Environment of a runner: directory, variables, and the exec-server."""

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
    """Where a runner starts processes: the project as they see it, and their variables.

    `scratch` is a directory for temporary files outside of the project. `session` marks processes,
    so that those of an earlier agent can be found and ended.
    """

    processes: Client
    root: str
    environment: Mapping[str, str]
    scratch: str
    session: str = ""

    async def start(self, *argv: str, environment: Mapping[str, str] | None = None) -> Process:
        """Start a process in the project, with a pipe as stdin."""
        given = {**self.environment, "TMPDIR": self.scratch, **(environment or {})}
        return await self.processes.start(Command(argv, self.root, given, has_stdin=True))

    @asynccontextmanager
    async def agent(self, *argv: str) -> AsyncGenerator[Process]:
        """Start a process; leaving the context ends it and its descendants."""
        mark = f"{self.session}/{secrets.token_hex(8)}"
        try:
            yield await self.start(*argv, environment={MARK: mark})
        finally:
            sweep(mark)

    def clear(self) -> None:
        """End processes that earlier agents of this session left behind."""
        if self.session:
            sweep(self.session)
