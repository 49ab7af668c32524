"""The real Codex on a scripted model, connected to as people connect to it."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.codex import AppServer, Thread
from tests.parts.codex_binary import VERSION, codex_binary, codex_home
from tests.parts.model_acts import Reply
from tests.parts.model_server import ModelRequest, ModelServer

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="/proc is missing")


@dataclass(frozen=True, slots=True)
class Stage:
    """A home of Codex and the model that it speaks with; they outlive every connection."""

    place: Path
    model: ModelServer
    env: dict[str, str]
    version: str = VERSION

    def connect(
        self,
        *,
        command: Sequence[str | Path] = (),
        **options: Any,  # Any: whatever `connect` takes
    ) -> AbstractAsyncContextManager[AppServer]:
        """Start a server in this home, and end it with the block."""
        argv = [str(word) for word in command or (codex_binary(self.version), "app-server")]
        return AppServer.connect(command=argv, cwd=str(self.place), env=self.env, **options)

    def living(self) -> dict[int, str]:
        """Every process of this home: the server, its wrapper, its commands; pid and program."""
        home = f"CODEX_HOME={self.env['CODEX_HOME']}".encode()
        found: dict[int, str] = {}
        for pid in (int(name) for name in os.listdir("/proc") if name.isdecimal()):
            try:
                environment = Path(f"/proc/{pid}/environ").read_bytes()
                if home in environment.split(b"\0"):
                    found[pid] = Path(f"/proc/{pid}/exe").readlink().name
            except OSError:
                pass  # it ended just now
        return found

    def pid_of(self, program: str) -> int:
        """The one process of this home that runs this program."""
        (pid,) = (pid for pid, name in self.living().items() if name == program)
        return pid


@asynccontextmanager
async def staged(
    place: Path,
    script: Iterable[Reply] | Callable[[ModelRequest], Reply],
    *,
    version: str = VERSION,
    **home: Any,  # Any: whatever `codex_home` takes
) -> AsyncGenerator[Stage]:
    """Set a home up for a model that follows this script."""
    async with ModelServer(script) as model:
        yield Stage(place, model, codex_home(place, model.url, **home), version)


@asynccontextmanager
async def playing(
    place: Path,
    script: Iterable[Reply] | Callable[[ModelRequest], Reply],
    *,
    version: str = VERSION,
    **options: Any,  # Any: whatever `connect` takes
) -> AsyncGenerator[tuple[Stage, AppServer, Thread]]:
    """One server and one thread on such a stage."""
    async with staged(place, script, version=version) as stage, stage.connect(**options) as server:
        yield stage, server, await server.start_thread(cwd=place)
