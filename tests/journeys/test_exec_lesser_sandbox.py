"""Where only a lesser sandbox can be made, whoever starts a process in it is told so."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.confine.restrict import landlock_version
from holdfast.confine.sandbox.landlock import LACKS
from tests.exec.server.talking import served, talking
from tests.exec.server.test_launcher import special
from tests.journeys.stage import linux_only

pytestmark = [pytest.mark.anyio, linux_only]

# Becomes a command for which there are no new namespaces.
WITHOUT_NAMESPACES = """
import os, platform, sys
from holdfast.confine import kernel, restrict
from holdfast.confine.sandbox.seccomp import Family, program
kernel.forbid_new_privileges()
restrict.filter_calls(program(platform.machine(), tuple(Family)))
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.fixture
def base() -> Iterator[Path]:
    if landlock_version() < 4:
        pytest.skip("this kernel has no Landlock that knows networks")
    with tempfile.TemporaryDirectory(dir="/var/lib", prefix="holdfast-test-") as made:
        yield Path(made).resolve()


def sandbox(root: Path) -> dict[str, Any]:
    entries = [special("minimal", "read"), special("project_roots", "write")]
    return {
        "permissions": {
            "type": "managed",
            "file_system": {"type": "restricted", "entries": entries},
            "network": "restricted",
        },
        "workspaceRoots": [root.as_uri()],
    }


@pytest.mark.parametrize("is_held_back", [True, False])
async def test_how_well_a_process_is_shut_in_is_said(base: Path, is_held_back: bool) -> None:
    project, outside = base / "project", base / "outside"
    project.mkdir()
    (project / "file").touch()
    through = (sys.executable, "-c", WITHOUT_NAMESPACES) if is_held_back else ()
    async with served(base / "state", through=through) as server, talking(server.url) as talk:
        await talk.introduce()
        how = {"sandbox": sandbox(project), "cwd": project.as_uri()}
        started = await talk.start("p", "sh", "-c", f"echo x >file; echo x >{outside}", **how)
        await talk.closed("p")
        plain = await talk.start("q", "true")

    told = started["sandboxStrength"], tuple(started.get("sandboxLacks", ()))[: len(LACKS)] == LACKS
    assert told == (("reduced", True) if is_held_back else ("full", False))
    assert started["sandboxType"] == "linuxSeccomp"
    assert plain == {"processId": "q", "sandboxType": "none"}
    assert ((project / "file").read_text(), outside.exists()) == ("x\n", False)
