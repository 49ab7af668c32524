"""Processes of the agent: sandbox policy, environment and command line.

Commands run through the exec-server, in the draft's place, inside a sandbox, with an environment
from which secrets are removed.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import anyio

from holdfast.confine import allowed_environment
from holdfast.exec import Client
from holdfast.exec.failures import StartFailed
from holdfast.exec.model import Command
from holdfast.world import MARK

# Sandbox policy, in the exec-server's format.

_LESSER = """\
# The sandbox here
This machine can only shut commands in less well than it should. A command still changes nothing \
but the project and $TMPDIR, and reaches no network. But: {lacks}. In the project's root, and \
wherever else it says "Permission denied", it changes files that are there and makes no new ones: \
make those with the write tool, then it can. Run nothing that you have not looked at."""
_NONE = """\
# No sandbox here
This machine cannot shut commands in ({lacks}). So a command runs only with reach `open`, and only \
if the person allows that very command. Use the other tools as far as they go, ask for a command \
where nothing else will do, and say what you could not check."""


@dataclass(frozen=True, slots=True)
class SandboxStrength:
    """How strong the sandbox is on this machine, and what it lacks."""

    strength: str = "full"  # `full`, `reduced` or `none`
    lacks: tuple[str, ...] = ()

    def for_model(self) -> str:
        """Return instructions for the model; empty for a full sandbox."""
        text = {"reduced": _LESSER, "none": _NONE}.get(self.strength, "")
        return text.format(lacks="; ".join(self.lacks))

    def for_person(self) -> str:
        """Return a warning for the person; empty for a full sandbox."""
        lacks = "; ".join(self.lacks)
        match self.strength:
            case "reduced":
                return (
                    "The agent's commands are shut in less well than they should be on this "
                    f"machine: {lacks}. See: holdfast doctor"
                )
            case "none":
                return (
                    "The agent's commands cannot be shut in on this machine "
                    f"({lacks}), so you are asked about each. See: holdfast doctor"
                )
            case _:
                return ""


def sandbox_for(
    root: str,
    scratch: str,
    readable: Iterable[str] = (),
    writable: Iterable[str] = (),
    *,
    has_network: bool = False,
) -> dict[str, object]:
    """Return the sandbox policy: write access to the project and `scratch`, little else.

    `readable` and `writable` are further paths; a writable path may lie inside a readable one.
    Protected file names stay read-only. There is no network unless `has_network`.
    """
    return {
        "permissions": {
            "type": "managed",
            "file_system": {
                "type": "restricted",
                "entries": [
                    {
                        "path": {"type": "special", "value": {"kind": "minimal"}},
                        "access": "read",
                    },
                    *({"path": _path(each), "access": "read"} for each in readable),
                    {
                        "path": {"type": "special", "value": {"kind": "project_roots"}},
                        "access": "write",
                    },
                    *({"path": _path(each), "access": "write"} for each in (scratch, *writable)),
                ],
            },
            "network": "enabled" if has_network else "restricted",
        },
        "workspaceRoots": [root],
    }


def _path(path: str) -> dict[str, str]:
    return {"type": "path", "path": path}


_QUIET: Final = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}
_NOTHING_LONGEST: Final = 5.0  # seconds to wait for `true`
_SHELLS: Final = ("/bin/bash", "/bin/sh")
# stderr goes to stdout, so that both appear in order, as in a terminal. TMPDIR is set inside the
# shell, because the sandbox sets its own, which does not outlive the command.
_ALL_TOGETHER: Final = 'export TMPDIR="$2"; exec "$0" -c "$1" 2>&1'


# Toolchains that are commonly installed in a home directory. Only directories with programs and
# packages: nothing here may contain credentials.
_TOOLCHAINS: Final = (
    *(".asdf", ".bun/bin", ".cargo/bin", ".cargo/registry", ".deno/bin", ".jenv", ".local/bin"),
    *(".local/pipx", ".local/share/fnm", ".local/share/mise", ".local/share/pipx"),
    *(".local/share/uv", ".m2/repository", ".nvm", ".pyenv", ".rbenv", ".rustup"),
    *(".sdkman/candidates", ".volta", "anaconda3", "go/bin", "go/pkg/mod", "miniconda3"),
)


class SandboxLevel(StrEnum):
    """What a process may access."""

    SANDBOX = "sandbox"  # the project
    NETWORK = "network"  # the project and the network
    OPEN = "open"  # everything that the person can access


def toolchains_in(home: Path) -> tuple[str, ...]:
    """Return the toolchain directories that exist in a home directory."""
    return tuple(str(home / each) for each in _TOOLCHAINS if (home / each).is_dir())


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxConfig:
    """How processes of the agent are started: `root`, environment and temporary directory.

    `session` marks the environment of all processes, so that those without a sandbox can be found
    and ended. `readable` and `writable` are further paths for the sandbox.
    """

    processes: Client
    root: str
    environment: Mapping[str, str]
    scratch: str
    session: str = ""
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()

    def new_mark(self) -> str:
        """Return a unique mark for the environment of one process and its descendants."""
        return f"{self.session}/tool-{secrets.token_hex(8)}"

    def shell(self, line: str, freedom: SandboxLevel, *, mark: str, has_stdin: bool) -> Command:
        """Return a command that runs a line in the shell."""
        shell = next((each for each in _SHELLS if os.path.exists(each)), _SHELLS[-1])
        argv = (_SHELLS[-1], "-c", _ALL_TOGETHER, shell, line, self.scratch)
        return self.command(argv, freedom, mark=mark, has_stdin=has_stdin)

    async def confinement(self) -> SandboxStrength:
        """Determine the strength of the sandbox by starting `true` in it."""
        command = self.command(("true",), SandboxLevel.SANDBOX, mark=self.new_mark())
        try:
            process = await self.processes.start(command)
        except StartFailed as failure:
            return SandboxStrength("none", (failure.reason,))
        with anyio.move_on_after(_NOTHING_LONGEST):
            while await process.receive():
                pass
        return SandboxStrength(process.sandbox_strength, process.sandbox_lacks)

    def command(
        self, argv: tuple[str, ...], freedom: SandboxLevel, *, mark: str, has_stdin: bool = False
    ) -> Command:
        """Return a command in the project, with the environment stripped of secrets."""
        offered = {**self.environment, **_QUIET, "TMPDIR": self.scratch, MARK: mark}
        env = {**allowed_environment(offered, ("*",)), MARK: mark}
        sandbox: dict[str, object] | None = None
        if freedom is not SandboxLevel.OPEN:
            has_network = freedom is SandboxLevel.NETWORK
            sandbox = sandbox_for(
                self.root, self.scratch, self.readable, self.writable, has_network=has_network
            )
        return Command(argv, self.root, env, has_stdin=has_stdin, sandbox=sandbox)
