"""Where an agent works: a directory, and a way to start processes there that survive cuts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.exec import Client, Process
from holdfast.exec.model import Command


@dataclass(frozen=True, slots=True)
class Stage:
    """What a runner is given: the project as its processes see it, and all that they get.

    `scratch` is a directory for temporary files outside of the project.
    """

    processes: Client
    root: str
    environment: Mapping[str, str]
    scratch: str

    async def start(self, *argv: str, environment: Mapping[str, str] | None = None) -> Process:
        """Start a process whose input is ours, in the project."""
        given = {**self.environment, "TMPDIR": self.scratch, **(environment or {})}
        return await self.processes.start(Command(argv, self.root, given, has_stdin=True))
