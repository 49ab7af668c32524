"""Where the agent's processes start: in the project's place, shut in, with nothing secret."""

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

# What a command of the agent may touch, in the words that the process plane understands.

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
    """How well commands are shut in, and what that lacks or why it cannot be done."""

    strength: str = "full"  # or `reduced`, or `none`
    lacks: tuple[str, ...] = ()

    def for_model(self) -> str:
        """What a model has to know about it; nothing if all is well."""
        text = {"reduced": _LESSER, "none": _NONE}.get(self.strength, "")
        return text.format(lacks="; ".join(self.lacks))

    def for_person(self) -> str:
        """What the person is told of it; nothing if all is well."""
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
    """The project and a directory for temporary files, of all else only what is for everyone.

    `readable` and `writable` are further paths; one that can be written may lie in a readable one.

    Names that programs obey stay as they are. Without leave nobody else is reached.
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
_NOTHING_LONGEST: Final = 5.0  # seconds that doing nothing is waited for
_SHELLS: Final = ("/bin/bash", "/bin/sh")
# What it complains of comes in between what it says, as a person at a terminal would see it. A
# sandbox has a directory for temporary files of its own, and ours outlives a command.
_ALL_TOGETHER: Final = 'export TMPDIR="$2"; exec "$0" -c "$1" 2>&1'


# Languages and their packages, as people put them below their homes: programs without secrets.
_TOOLCHAINS: Final = (
    *(".asdf", ".bun/bin", ".cargo/bin", ".cargo/registry", ".deno/bin", ".jenv", ".local/bin"),
    *(".local/pipx", ".local/share/fnm", ".local/share/mise", ".local/share/pipx"),
    *(".local/share/uv", ".m2/repository", ".nvm", ".pyenv", ".rbenv", ".rustup"),
    *(".sdkman/candidates", ".volta", "anaconda3", "go/bin", "go/pkg/mod", "miniconda3"),
)


class SandboxLevel(StrEnum):
    """How far a process reaches."""

    SANDBOX = "sandbox"  # the project, and nobody else
    NETWORK = "network"  # the project, and everybody who can be reached
    OPEN = "open"  # whatever the person could do


def toolchains_in(home: Path) -> tuple[str, ...]:
    """What commands need to see of a home so that its languages work, as far as it is there."""
    return tuple(str(home / each) for each in _TOOLCHAINS if (home / each).is_dir())


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxConfig:
    """What a process of the agent gets: the project at `root`, an environment, room in `scratch`.

    `session` marks everything that is not shut in, so that it can be found and ended. `readable`
    are further paths that commands may see, `writable` those that they may change.
    """

    processes: Client
    root: str
    environment: Mapping[str, str]
    scratch: str
    session: str = ""
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()

    def new_mark(self) -> str:
        """A mark for one process and all that it starts."""
        return f"{self.session}/tool-{secrets.token_hex(8)}"

    def shell(self, line: str, freedom: SandboxLevel, *, mark: str, has_stdin: bool) -> Command:
        """A command line for the shell of this machine."""
        shell = next((each for each in _SHELLS if os.path.exists(each)), _SHELLS[-1])
        argv = (_SHELLS[-1], "-c", _ALL_TOGETHER, shell, line, self.scratch)
        return self.command(argv, freedom, mark=mark, has_stdin=has_stdin)

    async def confinement(self) -> SandboxStrength:
        """How well a command is shut in here, found out by one that does nothing."""
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
        """A command in the project, that reaches so far and knows no secret."""
        offered = {**self.environment, **_QUIET, "TMPDIR": self.scratch, MARK: mark}
        env = {**allowed_environment(offered, ("*",)), MARK: mark}
        sandbox: dict[str, object] | None = None
        if freedom is not SandboxLevel.OPEN:
            has_network = freedom is SandboxLevel.NETWORK
            sandbox = sandbox_for(
                self.root, self.scratch, self.readable, self.writable, has_network=has_network
            )
        return Command(argv, self.root, env, has_stdin=has_stdin, sandbox=sandbox)
