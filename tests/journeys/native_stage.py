"""Our own agent as people run it, with a scripted provider, and a key that nobody is to see."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import anyio.to_thread

from holdfast.agent.providers.registry import Format
from holdfast.agent.providers.scripted import ScriptedAnswer, ScriptedCall
from tests.cli.running import COMMAND, environment
from tests.cli.workbenches import Bench
from tests.parts.provider_server import ProviderServer, Reply, reply

KEY = "sk-canary-0123456789abcdefghijklmnopqrstuvwxyz"
Script = Callable[[ProviderServer], Iterator[ScriptedAnswer | Reply]]


def use(tool: str, /, **arguments: object) -> ScriptedAnswer:
    """An answer that calls one tool."""
    return ScriptedAnswer(calls=(ScriptedCall(tool, arguments),))


def serving(form: Format, script: Script) -> ProviderServer:
    """A provider that answers by what it was asked; a script looks at the server's requests."""
    server = ProviderServer(())

    def replies() -> Iterator[Reply]:
        for number, each in enumerate(script(server)):
            yield reply(form, each, f"m{number}") if isinstance(each, ScriptedAnswer) else each

    server.replies = replies()
    return server


def settle(bench: Bench, form: Format, **urls: str) -> None:
    """Let a person know these providers, with a key for each in a file of their own."""
    config = bench.settings.config
    config.mkdir(mode=0o700, parents=True, exist_ok=True)
    told = [
        f'[{name}]\nformat = "{form}"\nurl = "{url}"\nvariable = "THERE_API_KEY"\n'
        for name, url in urls.items()
    ]
    (config / "providers.toml").write_text("".join(told))
    (config / "keys.toml").touch(mode=0o600)
    (config / "keys.toml").write_text("".join(f'{name} = "{KEY}"\n' for name in urls))


async def asked(bench: Bench, *words: str) -> subprocess.CompletedProcess[bytes]:
    """What comes of asking our own agent as a person does."""

    def run() -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*COMMAND, "ask", "--json", *words],
            env=environment(bench.home),
            cwd=bench.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=280,
            check=False,
        )

    return await anyio.to_thread.run_sync(run)


def new_session(prompt: str, *, provider: str = "there") -> tuple[str, ...]:
    """The words by which a person begins a session, and agrees to it."""
    return ("--runner", "native", "--model", f"{provider}/some-model", "--consent", prompt)


def anchor(server: ProviderServer, text: str) -> str:
    """What the agent was last shown before a line, by which that line is edited."""
    found = re.findall(rf"(\d+:\w+)\|{re.escape(text)}", told(server))
    assert found, f"{text!r} was not shown"
    return str(found[-1])


def told(server: ProviderServer) -> str:
    """All that the model is told by now."""
    return server.requests[-1].body.decode()


def processes() -> dict[int, tuple[bytes, bytes]]:
    """Everybody who runs on this machine: their commands, and their environments."""
    found: dict[int, tuple[bytes, bytes]] = {}
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            with suppress(OSError):  # it has ended
                told = (each / "cmdline").read_bytes(), (each / "environ").read_bytes()
                found[int(each.name)] = told
    return found


def holders(key: str, *roots: Path) -> list[str]:
    """The files that hold a key, wherever they are below some directories."""
    found: list[str] = []
    for root in roots:
        for directory, _, names in os.walk(root):
            for name in names:
                path = Path(directory, name)
                if path.is_file() and key.encode() in path.read_bytes():
                    found.append(str(path))
    return found
