"""Processes and files are confined as Codex asks: no less, and where that cannot be, not at all."""

from __future__ import annotations

import base64
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.confine import PlaceSpec, create, end, strength_within
from holdfast.confine.failures import PlaceUnavailable
from tests.exec.server.housing import Housed, housed
from tests.exec.server.talking import Refused, Talk, until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such sandboxes"),
]
if sys.platform == "linux":
    pytestmark.append(
        pytest.mark.skipif(
            strength_within(()) != "full", reason="there is no full sandbox on this machine"
        )
    )


ORDINARY = "/var/lib/holdfast-test-ordinary"  # made for an ordinary user, by who runs tests as one


def special(kind: str, access: str, **more: str) -> dict[str, Any]:
    value = {"kind": kind, **({"subpath": more.pop("subpath")} if "subpath" in more else {})}
    return {"path": {"type": "special", "value": value}, "access": access, **more}


def workspace_write(*roots: Path, network: str = "restricted", cwd: Path | None = None) -> Any:
    """What the real client sends for workspace-write."""
    entries = [
        special("root", "read"),
        special("project_roots", "write"),
        special("slash_tmp", "write"),
        special("tmpdir", "write"),
        *(
            special("project_roots", "read", subpath=name, missing_path_behavior="skip")
            for name in (".git", ".agents", ".codex")
        ),
    ]
    return {
        "permissions": {
            "type": "managed",
            "file_system": {"type": "restricted", "entries": entries},
            "network": network,
        },
        "cwd": (cwd or roots[0]).as_uri(),
        "workspaceRoots": [root.as_uri() for root in roots],
        "windowsSandboxLevel": "disabled",
        "windowsSandboxProxySettingsMode": "reconcile",
        "useLegacyLandlock": False,
    }


READ_ONLY = {
    "permissions": {
        "type": "managed",
        "file_system": {"type": "restricted", "entries": [special("root", "read")]},
        "network": "restricted",
    },
    "workspaceRoots": [],
}


@asynccontextmanager
async def shut(base: Path) -> AsyncIterator[tuple[Housed, Talk, Path]]:
    """A server, a client and a project, which is outside of all that may be written anyway."""
    project = base / "project"
    project.mkdir()
    (base / "outside").write_text("as it was")
    async with housed(base / "state") as server, server.talk() as talk:
        yield server, talk, project
    assert (base / "outside").read_text() == "as it was"


@pytest.fixture
def base() -> Iterator[Path]:
    """Not below /tmp, which a workspace may write."""
    with tempfile.TemporaryDirectory(dir=roomy(), prefix="holdfast-test-") as made:
        yield Path(made).resolve()


def roomy() -> str:
    """A directory that is neither the system's nor for temporary files."""
    return next(path for path in ("/var/lib", ORDINARY) if os.access(path, os.W_OK))


def _taken(path: str) -> str:
    text = Path(path).read_text()
    os.unlink(path)
    return text


async def test_a_command_writes_its_workspace_and_nothing_else(base: Path) -> None:
    async with shut(base) as (_, talk, project):
        script = (
            "echo in >inside; echo x >../outside; echo x >/var/lib/x; mkdir .codex;"
            " mkdir .git; cat ../outside; ls ../state; echo; wc -l </proc/net/route; echo t >$TMP"
        )
        temporary = f"/tmp/{base.name}"
        began = await talk.start(
            "p",
            "sh",
            "-c",
            script,
            cwd=project.as_uri(),
            sandbox=workspace_write(project),
            env={"PATH": "/usr/bin:/bin", "TMP": temporary, "API_KEY": "secret"},
        )
        await talk.closed("p")
        told = talk.output("p").decode()
        page = await talk.call("process/read", processId="p")

    assert began["sandboxType"] == "linuxSeccomp"
    assert (project / "inside").read_text() == "in\n"
    assert _taken(temporary) == "t\n"
    assert "as it was" in told
    assert "\n1\n" in told  # no route leads anywhere
    assert page["exitCode"] == 0
    assert sorted(path.name for path in project.iterdir()) == ["inside"]


async def test_a_refusal_is_told_as_one(base: Path) -> None:
    async with shut(base) as (_, talk, project):
        await talk.run(
            "p",
            "sh",
            "-c",
            "echo x >../outside",
            cwd=project.as_uri(),
            sandbox=workspace_write(project),
        )
        await talk.run("q", "sh", "-c", "echo no; exit 3", cwd=project.as_uri(), sandbox=READ_ONLY)
        told = [n["sandboxDenied"] for name in "pq" for n in talk.of(name) if "exitCode" in n]
        read = [(await talk.call("process/read", processId=name))["sandboxDenied"] for name in "pq"]

    assert told == read == [True, False]


@pytest.mark.promise("C7")
async def test_the_directory_of_a_command_makes_nothing_writable(base: Path) -> None:
    async with shut(base) as (_, talk, project):
        (project / "up").symlink_to("..")
        for number, cwd in enumerate(("file:///", base.as_uri(), (project / "up").as_uri())):
            asked = workspace_write(project, cwd=base)
            status, _ = await talk.run(
                f"p{number}", "sh", "-c", f"echo x >{base}/outside", cwd=cwd, sandbox=asked
            )
            assert status != 0


async def test_signals_reach_the_command_and_not_what_is_around_it(base: Path) -> None:
    async with shut(base) as (_, talk, project):
        script = "trap 'echo heard; exit 7' INT; echo ready; while :; do sleep 0.05; done"
        for name, tty in (("p", False), ("t", True)):
            await talk.start(
                name,
                "sh",
                "-c",
                script,
                cwd=project.as_uri(),
                tty=tty,
                sandbox=workspace_write(project),
            )
            await talk.until(lambda name=name: b"ready" in talk.output(name))
            if tty:
                await talk.call("process/write", processId=name, chunk="Aw==", writeId="1")
            else:
                await talk.call("process/signal", processId=name, signal="interrupt")
            await talk.closed(name)
            (status,) = (n["exitCode"] for n in talk.of(name) if "exitCode" in n)
            assert (status, b"heard" in talk.output(name)) == (7, True)

        await talk.start(
            "k",
            "sh",
            "-c",
            "trap '' TERM INT; (sleep 60 & echo $!; sleep 60)",
            cwd=project.as_uri(),
            sandbox=workspace_write(project),
        )
        await talk.until(lambda: talk.output("k") != b"")
        assert await talk.call("process/terminate", processId="k") == {"running": True}
        await talk.closed("k")


async def test_a_place_and_a_sandbox_in_it(base: Path) -> None:
    project, draft = base / "project", base / "draft"
    (base / "state").mkdir(mode=0o700)
    project.mkdir()
    try:
        create(
            PlaceSpec(directory=str(draft), project=str(project), hidden=(str(base / "state"),))
        ).close()
    except PlaceUnavailable as unavailable:
        pytest.skip(f"no place can be made here: {unavailable}")
    try:
        async with housed(base / "state") as server, server.talk(place=str(draft)) as talk:
            status, said = await talk.run(
                "p",
                "sh",
                "-c",
                "echo in >inside && mkdir .codex",
                cwd=project.as_uri(),
                sandbox=workspace_write(project),
            )
            assert status != 0, said
            await until(lambda: sorted(os.listdir(draft / "upper")) == ["inside"])
    finally:
        end(draft)
    assert list(project.iterdir()) == []


async def refused(talk: Talk, method: str, **params: Any) -> str:
    with pytest.raises(Refused) as raised:
        await talk.call(method, **params)
    return raised.value.failure


@pytest.mark.promise("C8")
async def test_files_are_confined_by_the_same_request(base: Path) -> None:
    async with shut(base) as (_, talk, project):
        (project / "out").symlink_to("..")
        asked = workspace_write(project)

        async def write(path: Path, sandbox: Any = asked) -> str:
            params = {"path": path.as_uri(), "dataBase64": "eA==", "sandbox": sandbox}
            try:
                return str(await talk.call("fs/writeFile", **params))
            except Refused as error:
                return error.failure

        assert await write(project / "file") == "{}"
        denied = [
            base / "outside",
            project / "out" / "outside",
            project / "out" / "new",
            project / ".codex" / "config.toml",
            project / ".git" / "hooks" / "pre-commit",
            project / ".envrc",
        ]
        failures = {await write(path) for path in denied}
        made = await refused(
            talk, "fs/createDirectory", path=(project / ".codex").as_uri(), sandbox=asked
        )
        removed = await refused(talk, "fs/remove", path=base.as_uri(), sandbox=asked)
        read = await talk.call("fs/readFile", path=(base / "outside").as_uri(), sandbox=asked)
        secret = await refused(
            talk, "fs/readDirectory", path=(base / "state").as_uri(), sandbox=asked
        )
        read_only = await write(project / "file", READ_ONLY)

    assert failures | {made, removed, secret, read_only} <= {
        "EXEC_FILE_FAILED",
        "EXEC_FILE_MISSING",
        "EXEC_REQUEST_UNFIT",
    }
    assert base64.b64decode(read["dataBase64"]) == b"as it was"
    assert sorted(path.name for path in project.iterdir()) == ["file", "out"]
