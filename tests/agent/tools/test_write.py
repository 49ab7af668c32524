"""A file is written whole, like the one before it, and only where a file may be."""

from __future__ import annotations

import pytest

from holdfast.agent.failures import LeaveRefused, ToolRefused
from holdfast.agent.memory import MemoryDesk, MemoryWorkspace
from holdfast.agent.model import Done
from holdfast.agent.permissions import Approvals
from holdfast.agent.tools.read import FILE_BYTES_MAX
from holdfast.agent.tools.write import Write

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("path", "before", "content", "after", "done"),
    [
        (
            "d/new",
            None,
            "a\n",
            b"a\n",
            Done(
                "Made d/new (2 bytes).",
                shown="--- /dev/null\n+++ b/d/new\n@@ -0,0 +1 @@\n+a",
                paths=("d/new",),
            ),
        ),
        (
            "f",
            b"\xef\xbb\xbfa\r\nb\r\n",
            "a\nc\n",
            b"\xef\xbb\xbfa\r\nc\r\n",
            Done(
                "Replaced f (9 bytes).",
                shown="--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c",
                paths=("f",),
            ),
        ),
        (
            "f",
            b"\0",
            "a",
            b"a",
            Done("Replaced f (1 bytes).", shown="f: 1 bytes became 1", paths=("f",)),
        ),
        ("f", b"a", "a", b"a", Done("f is like that already.")),
    ],
)
async def test_a_file_is_written(
    path: str, before: bytes | None, content: str, after: bytes, done: Done
) -> None:
    workspace = MemoryWorkspace({} if before is None else {path: before})

    said = await Write(workspace, Approvals()).use({"path": path, "content": content}, MemoryDesk())

    assert said == done
    assert workspace.files == {path: after}


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("d", "is a directory"),
        ("../x", "outside"),
        ("", "the project itself"),
        ("huge", "too many"),
    ],
)
async def test_where_no_file_may_be_none_is_written(path: str, reason: str) -> None:
    workspace = MemoryWorkspace({"d/x": b"", "huge": b"x" * (FILE_BYTES_MAX + 1)})
    with pytest.raises(ToolRefused, match=reason):
        await Write(workspace, Approvals()).use({"path": path, "content": "x"}, MemoryDesk())


@pytest.mark.promise("C22")
@pytest.mark.parametrize("path", [".git/hooks/pre-commit", ".mcp.json", "a/.GIT/config"])
async def test_what_programs_obey_is_not_written_without_leave(path: str) -> None:
    workspace = MemoryWorkspace()
    with pytest.raises(LeaveRefused):
        await Write(workspace, Approvals()).use({"path": path, "content": "x"}, MemoryDesk())
    assert workspace.files == {}


def test_it_is_told_to_the_person() -> None:
    tool = Write(MemoryWorkspace(), Approvals())

    assert tool.spec.name == "write"
    assert tool.title({"path": "f", "content": ""}) == "Write f"
