"""The real Codex behind a wrapper, and what is left when either side is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from holdfast.codex import ConnectionState
from holdfast.rpc.failures import ConnectionLost
from tests.codex.served import until
from tests.journeys.stage import Stage, linux_only, staged
from tests.parts.codex_binary import codex_binary, wrapper_script
from tests.parts.model_acts import Hang, Say, run

pytestmark = [pytest.mark.anyio, linux_only]

ROOT = Path(__file__).parents[2]
CLIENT = """
import sys, anyio
from holdfast.codex import AppServer

async def main():
    async with AppServer.connect(command=sys.argv[1:], cwd=sys.path[0]) as server:
        thread = await server.start_thread(cwd=sys.path[0])
        await thread.ask("go")

anyio.run(main)
"""


def npm_wrapper(place: Path) -> Path:
    """What npm installs, by its name on the path."""
    codex_binary()  # or skip
    return wrapper_script()


def shell_wrapper(place: Path) -> Path:
    """A script of somebody's own, which nobody can see through."""
    script = place / "my-codex"
    script.write_text(f'#!/bin/sh\n"{codex_binary()}" "$@"\nexit $?\n')
    script.chmod(0o755)
    return script


async def test_the_npm_wrapper_is_seen_through(tmp_path: Path) -> None:
    async with staged(tmp_path, [[Say("Hello.")]]) as stage:
        stage.env["PATH"] = f"{npm_wrapper(tmp_path).parent}:{stage.env['PATH']}"
        async with stage.connect(command=["codex", "app-server"]) as server:
            assert list(stage.living().values()) == ["codex"]
            thread = await server.start_thread(cwd=tmp_path)
            assert (await thread.ask("hi")).text == "Hello."
        assert stage.living() == {}


@pytest.mark.promise("F2")
async def test_a_killed_wrapper_is_noticed_though_the_server_lives(tmp_path: Path) -> None:
    async with staged(tmp_path, [[run("exec sleep 600")]]) as stage:
        command = [str(shell_wrapper(tmp_path)), "app-server"]
        async with stage.connect(command=command) as server:
            thread = await server.start_thread(cwd=tmp_path)
            (wrapper,) = (pid for pid, name in stage.living().items() if name != "codex")

            async def kill() -> None:
                await until(lambda: "sleep" in stage.living().values())
                os.kill(wrapper, signal.SIGKILL)

            with anyio.fail_after(60):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(kill)
                    with pytest.raises(ConnectionLost) as lost:
                        await thread.ask("go")
            assert lost.value.status == -signal.SIGKILL
            assert server.state is ConnectionState.CRASHED
        assert stage.living() == {}


@pytest.mark.parametrize("wrapper", [npm_wrapper, shell_wrapper])
async def test_nothing_outlives_a_client_that_is_killed(
    wrapper: Callable[[Path], Path], tmp_path: Path
) -> None:
    async with staged(tmp_path, [[run("exec sleep 600")], [Hang()]]) as stage:
        client = start_client(stage, wrapper(tmp_path))
        try:
            with anyio.fail_after(30):
                await until(lambda: "sleep" in stage.living().values())
            assert client.pid in stage.living()
            client.kill()
            with anyio.fail_after(60):
                await until(lambda: stage.living() == {})
        finally:
            client.kill()
            client.wait()


def start_client(stage: Stage, program: Path) -> subprocess.Popen[bytes]:
    """A program of somebody's own that asks Codex something, in the home of this stage."""
    script = stage.place / "client.py"
    script.write_text(CLIENT)
    env = {**stage.env, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.Popen([sys.executable, script, program, "app-server"], env=env)
