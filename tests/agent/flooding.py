"""Let a command say a lot, and tell how much memory it took to hear it.

python -m tests.agent.flooding DIRECTORY BYTES
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import anyio

from holdfast.agent.memory import MemoryToolContext
from holdfast.agent.permission_rules import PermissionAnswer
from holdfast.agent.permissions import Permissions
from holdfast.agent.sandbox import SandboxConfig
from holdfast.agent.tools.shell import ShellTool, open_shell_commands
from holdfast.exec import Client
from holdfast.rpc import connect_websocket
from tests.exec.server.talking import PATH, served


async def main(directory: Path, size: int) -> None:
    """Run it, with the server in a process of its own."""
    async with (
        served(directory / "state") as server,
        Client(lambda: connect_websocket(server.url)) as client,
    ):
        sandbox = SandboxConfig(
            processes=client, root=str(directory), environment=PATH, scratch=str(directory)
        )
        async with open_shell_commands(sandbox) as shells:
            line = f"head -c {size} /dev/zero | tr '\\0' x; echo; echo the end"
            asked: dict[str, object] = {"command": line, "seconds": 300, "reach": "open"}
            context = MemoryToolContext(answers=[PermissionAnswer.ONCE])
            done = await ShellTool(shells, Permissions()).use(asked, context)
            told = {
                "said": shells.find("sh1").total,
                "held": len(done.text),
                "shown": sum(map(len, context.shown)),
                "end": done.text[-8:],
                "status": done.status,
                "rss_mb": _peak_kib() // 1024,
                "cpu_s": resource.getrusage(resource.RUSAGE_SELF).ru_utime,
            }
    sys.stdout.write(json.dumps(told) + "\n")


def _peak_kib() -> int:
    """The most memory that we have had; `ru_maxrss` begins with that of whoever started us."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]))
