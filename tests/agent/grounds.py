"""A ground for the agent's processes on a server of its own."""

from __future__ import annotations

import os
import sys
import tempfile
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from holdfast.agent.sandbox import SandboxConfig
from holdfast.confine import strength_within
from holdfast.exec import Client
from tests.exec.server.housing import housed
from tests.exec.server.talking import until

ORDINARY = "/var/lib/holdfast-test-ordinary"  # made for an ordinary user, by who runs tests as one


soon = partial(until, within=60.0)
"""Wait until something is so, however slow the machine is."""


def needs_sandbox() -> pytest.MarkDecorator:
    """For tests that shut commands in."""
    is_there = sys.platform == "linux" and strength_within(()) == "full"
    return pytest.mark.skipif(not is_there, reason="there is no full sandbox on this machine")


@asynccontextmanager
async def ground_in(tmp_path: Path) -> AsyncGenerator[SandboxConfig]:
    """A project and a ground; the project is outside of all that may be written anyway."""
    roomy = next(path for path in ("/var/lib", ORDINARY, str(tmp_path)) if os.access(path, os.W_OK))
    with tempfile.TemporaryDirectory(dir=roomy, prefix="holdfast-test-") as made:
        base = Path(made)
        for name in ("project", "scratch"):
            (base / name).mkdir()
        env = {"PATH": "/usr/bin:/bin", "HOME": str(base), "OPENAI_API_KEY": "secret-canary"}
        async with housed(tmp_path / "state") as server, Client(server.dial) as client:
            yield SandboxConfig(
                processes=client,
                root=str(base / "project"),
                environment=env,
                scratch=str(base / "scratch"),
                session=uuid.uuid4().hex,
            )
