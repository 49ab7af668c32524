"""All runners do what every runner must do."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from holdfast.agent import AgentConfig, ScriptedModels
from holdfast.agent.conversation import TASK
from holdfast.agent.model import ModelChoice
from holdfast.agent.permissions import Permissions
from holdfast.agent.providers.scripted import ScriptedAnswer, ScriptedCall
from holdfast.agent.sandbox import SandboxConfig
from holdfast.agent.tools.shell import ShellTool, open_shell_commands
from holdfast.exec import Client
from holdfast.rpc import connect_websocket
from holdfast.runners.codex import CodexRunner
from holdfast.runners.environment import RunnerEnvironment
from holdfast.runners.native import NativeRunner
from holdfast.runners.rehearsal.runner import Rehearsal
from holdfast.runners.testing import Prepare, RunnerContract, Runs, Says, Turns
from holdfast.world import command_of, environment_of, system_processes
from tests.exec.server.talking import served
from tests.journeys.stage import linux_only
from tests.parts.codex_binary import codex_binary, codex_home
from tests.parts.model_acts import Act, Reply, Say, run
from tests.parts.model_server import ModelServer

SOURCE = os.path.abspath("src")
AGENT = "holdfast.runners.rehearsal.process"


@asynccontextmanager
async def stage_in(tmp_path: Path, root: Path) -> AsyncGenerator[RunnerEnvironment]:
    """A stage on a server of its own, in a directory of this machine."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE}
    async with (
        served(tmp_path / "state") as server,
        Client(lambda: connect_websocket(server.url)) as client,
    ):
        yield RunnerEnvironment(client, str(root), env, str(scratch))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    return made


class TestRehearsal(RunnerContract):
    """The scripted runner."""

    @pytest.fixture
    def prepare(self, tmp_path: Path, root: Path) -> Prepare:
        @asynccontextmanager
        async def prepare(turns: Turns) -> AsyncGenerator[Rehearsal]:
            script = tmp_path / "scenario.json"
            script.write_text(json.dumps({"turn": [{"step": steps(turn)} for turn in turns]}))
            async with stage_in(tmp_path, root) as stage:
                yield Rehearsal(stage, script)

        return prepare

    @pytest.fixture
    def kill(self, tmp_path: Path) -> Callable[[], None]:
        def kill() -> None:
            (pid,) = (
                each.pid
                for each in system_processes()
                if AGENT in command_of(each.pid) and str(tmp_path) in command_of(each.pid)
            )
            os.kill(pid, signal.SIGKILL)

        return kill


@linux_only
class TestCodex(RunnerContract):
    """The real Codex, whose model follows a script."""

    @pytest.fixture
    def prepare(self, tmp_path: Path, root: Path) -> Prepare:
        @asynccontextmanager
        async def prepare(turns: Turns) -> AsyncGenerator[CodexRunner]:
            program = str(codex_binary())
            policy = "untrusted" if any(needs_permission(turn) for turn in turns) else "never"
            script = [reply for turn in turns for reply in replies(turn)]
            async with (
                ModelServer(script) as model,
                stage_in(tmp_path, root) as stage,
            ):
                env = {**stage.environment, **codex_home(tmp_path / "codex", model.url)}
                stage = replace(stage, environment=env)
                yield CodexRunner(stage, program, approval_policy=policy)

        return prepare

    @pytest.fixture
    def kill(self, tmp_path: Path) -> Callable[[], None]:
        def kill() -> None:
            home = f"CODEX_HOME={tmp_path / 'codex' / 'codex-home'}".encode()
            (pid,) = (
                each.pid
                for each in system_processes()
                if "app-server" in command_of(each.pid) and home in environment_of(each.pid)
            )
            os.kill(pid, signal.SIGKILL)

        return kill


@linux_only
class TestNative(RunnerContract):
    """Our own agent, whose model follows a script; its shell runs on the stage."""

    died = "AGENT_CRASHED"

    @pytest.fixture
    def prepare(self, tmp_path: Path, root: Path) -> Prepare:
        @asynccontextmanager
        async def prepare(turns: Turns) -> AsyncGenerator[NativeRunner]:
            models = ScriptedModels(line for turn in turns for line in lines(turn))
            async with stage_in(tmp_path, root) as stage:
                ground = SandboxConfig(
                    processes=stage.processes,
                    root=stage.root,
                    environment=stage.environment,
                    scratch=stage.scratch,
                    session=str(tmp_path),
                )

                @asynccontextmanager
                async def kits() -> AsyncGenerator[AgentConfig]:
                    async with open_shell_commands(ground) as shells:
                        yield AgentConfig(
                            models=models,
                            choice=ModelChoice("scripted", "script"),
                            tools={"shell": ShellTool(shells, Permissions())},
                            clear=partial(shells.end_all, "the turn was stopped"),
                        )

                yield NativeRunner(kits)

        return prepare

    @pytest.fixture
    def kill(self) -> Callable[[], None]:
        def kill() -> None:
            (task,) = (each for each in asyncio.all_tasks() if each.get_name() == TASK)
            task.cancel()

        return kill


def lines(turn: Sequence[Says | Runs]) -> list[ScriptedAnswer]:
    """An answer for each command, with what is said before it, and one for what is said last."""
    made: list[ScriptedAnswer] = []
    said = ""
    for each in turn:
        if isinstance(each, Says):
            said += each.text
        else:
            reach = "open" if each.needs_permission else "sandbox"
            arguments: dict[str, object] = {"command": each.command, "reach": reach, "seconds": 60}
            made.append(ScriptedAnswer(say=said, calls=(ScriptedCall("shell", arguments),)))
            said = ""
    return [*made, ScriptedAnswer(say=said)] if said else made


def needs_permission(turn: Sequence[Says | Runs]) -> bool:
    return any(isinstance(each, Runs) and each.needs_permission for each in turn)


def replies(turn: Sequence[Says | Runs]) -> list[Reply]:
    """Each reply ends with a call, but for the last: what ends with words ends the turn."""
    made: list[list[Act]] = [[]]
    for number, each in enumerate(turn):
        if isinstance(each, Says):
            made[-1].append(Say(each.text))
        else:
            made[-1].append(run(each.command, call_id=f"call_{number}"))
            made.append([])
    return [reply for reply in made if reply]


def steps(turn: Sequence[Says | Runs]) -> list[dict[str, object]]:
    made: list[dict[str, object]] = []
    for each in turn:
        if isinstance(each, Says):
            made.append({"say": each.text})
            continue
        if each.needs_permission:
            made.append({"ask": f"May I run {each.command}?", "approval": True})
        made.append({"run": each.command})
    return made
