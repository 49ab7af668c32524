"""A file is written whole, like the one before it, and only where a file may be."""

from __future__ import annotations

import pytest

from holdfast.agent.failures import PermissionRefused, ToolRefused
from holdfast.agent.memory import MemoryToolContext, MemoryWorkspace
from holdfast.agent.model import ToolResult
from holdfast.agent.permissions import Permissions
from holdfast.agent.tools.read import FILE_BYTES_MAX
from holdfast.agent.tools.write import WriteTool

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("path", "before", "content", "after", "done"),
    [
        (
            "d/new",
            None,
            "a\n",
            b"a\n",
            ToolResult(
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
            ToolResult(
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
            ToolResult("Replaced f (1 bytes).", shown="f: 1 bytes became 1", paths=("f",)),
        ),
        ("f", b"a", "a", b"a", ToolResult("f is like that already.")),
    ],
)
async def test_a_file_is_written(
    path: str, before: bytes | None, content: str, after: bytes, done: ToolResult
) -> None:
    workspace = MemoryWorkspace({} if before is None else {path: before})

    said = await WriteTool(workspace, Permissions()).use(
        {"path": path, "content": content}, MemoryToolContext()
    )

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
        await WriteTool(workspace, Permissions()).use(
            {"path": path, "content": "x"}, MemoryToolContext()
        )


@pytest.mark.promise("C22")
@pytest.mark.parametrize("path", [".git/hooks/pre-commit", ".mcp.json", "a/.GIT/config"])
async def test_what_programs_obey_is_not_written_without_leave(path: str) -> None:
    workspace = MemoryWorkspace()
    with pytest.raises(PermissionRefused):
        await WriteTool(workspace, Permissions()).use(
            {"path": path, "content": "x"}, MemoryToolContext()
        )
    assert workspace.files == {}


def test_it_is_told_to_the_person() -> None:
    tool = WriteTool(MemoryWorkspace(), Permissions())

    assert tool.spec.name == "write"
    assert tool.title({"path": "f", "content": ""}) == "Write f"
