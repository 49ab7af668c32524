"""A command of the agent gets what it needs and no secret, and is shut in unless it may roam."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from holdfast.agent.sandbox import (
    SandboxConfig,
    SandboxLevel,
    SandboxStrength,
    sandbox_for,
    toolchains_in,
)
from holdfast.exec import Client, Process
from holdfast.exec.failures import StartFailed
from holdfast.exec.model import Command
from holdfast.world import MARK
from tests.agent.grounds import ground_in, needs_sandbox
from tests.journeys.stage import linux_only

SECRETS = (
    *("OPENAI_API_KEY", "GITHUB_TOKEN", "MY_SECRET", "PGPASSWORD", "DB_PASS", "api_key"),
    *("AWS_CREDENTIALS", "SSH_AUTH_SOCK", "SESSION_COOKIE"),
)
GROUND = SandboxConfig(
    processes=cast("Client", None),  # nothing is started here
    root="/project",
    environment={"PATH": "/bin", "LANG": "C", **dict.fromkeys(SECRETS, "canary")},
    scratch="/scratch",
    session="s1",
)


@pytest.mark.promise("C22")
@pytest.mark.promise("C6")
@pytest.mark.parametrize("freedom", SandboxLevel)
def test_no_secret_is_given_to_anybody(freedom: SandboxLevel) -> None:
    command = GROUND.shell("true", freedom, mark="s1/m", has_stdin=False)

    assert "canary" not in repr(command)
    assert {"PATH": "/bin", "LANG": "C", "TMPDIR": "/scratch", MARK: "s1/m"}.items() <= dict(
        command.env
    ).items()


@pytest.mark.parametrize(
    ("freedom", "sandbox"),
    [
        (SandboxLevel.SANDBOX, sandbox_for("/project", "/scratch", ("/opt",))),
        (SandboxLevel.NETWORK, sandbox_for("/project", "/scratch", ("/opt",), has_network=True)),
        (SandboxLevel.OPEN, None),
    ],
)
def test_how_far_it_reaches(freedom: SandboxLevel, sandbox: object) -> None:
    config = replace(GROUND, readable=("/opt",))

    command = config.command(("x", "$(y)"), freedom, mark="m")

    assert (command.sandbox, command.argv, command.cwd) == (sandbox, ("x", "$(y)"), "/project")


def test_every_mark_is_of_the_session_and_new() -> None:
    marks = {GROUND.new_mark() for _ in range(100)}

    assert len(marks) == 100
    assert all(mark.startswith("s1/tool-") for mark in marks)


def test_of_a_home_only_languages_are_seen(tmp_path: Path) -> None:
    for name in (".pyenv", ".ssh", ".cargo/bin", ".config", ".aws"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / ".nvm").write_text("no directory")

    assert toolchains_in(tmp_path) == (f"{tmp_path}/.cargo/bin", f"{tmp_path}/.pyenv")


class Refusing:
    """A server that shuts nobody in."""

    async def start(self, command: Command) -> Process:
        assert command.sandbox is not None
        raise StartFailed(command=" ".join(command.argv), reason="bubblewrap is missing")


@pytest.mark.anyio
async def test_where_nobody_is_shut_in_it_is_said_why() -> None:
    sandbox = replace(GROUND, processes=cast("Client", Refusing()))  # all that is asked of it

    assert await sandbox.confinement() == SandboxStrength("none", ("bubblewrap is missing",))


@pytest.mark.anyio
@linux_only
@needs_sandbox()
async def test_how_well_commands_are_shut_in_is_found_out(tmp_path: Path) -> None:
    async with ground_in(tmp_path) as sandbox:
        assert (await sandbox.confinement()).strength == "full"
