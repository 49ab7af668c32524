"""Tool that writes a whole file."""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.agent.arguments import fields, given, text
from holdfast.agent.failures import ToolRefused
from holdfast.agent.model import FileKind, FileWrite, ToolResult, ToolSpec
from holdfast.agent.permission_rules import single_line
from holdfast.agent.permissions import Permissions, require_file_permission
from holdfast.agent.ports import FileTree, ToolContext, Workspace
from holdfast.agent.tools.documents import Document, is_binary, parsed, require_lossless, restyled
from holdfast.agent.tools.patch_format import bounded, diff
from holdfast.agent.tools.paths import named
from holdfast.agent.tools.read import DIFF_CHARS_MAX, FILE_BYTES_MAX
from holdfast.nouns import RelativePath

_SPEC: Final = ToolSpec(
    name="write",
    description=(
        "Write a whole text file; directories on the way are made. For a file that is there, edit "
        "is better: this replaces all of it."
    ),
    parameters=fields(
        ("path", "content"),
        path=text("The file, relative to the project."),
        content=text("All that is to be in it."),
    ),
)


class _Given(msgspec.Struct, frozen=True):
    path: str
    content: str


class WriteTool:
    """Creates or replaces a file."""

    spec = _SPEC
    only_reads = False

    def __init__(self, workspace: Workspace, approvals: Permissions) -> None:
        self._workspace, self._approvals = workspace, approvals

    def title(self, arguments: dict[str, object]) -> str:
        return f"Write {single_line(given(arguments, _Given).path)}"

    async def use(self, arguments: dict[str, object], context: ToolContext) -> ToolResult:
        """Write the file; the person is shown a diff."""
        asked = given(arguments, _Given)
        path = named(asked.path, self._workspace.root)

        def made(tree: FileTree) -> tuple[bytes | None, bytes, str]:
            before = replaced_at(tree, path)
            like = None if before is None else parsed(before)
            if like is not None:
                require_lossless(str(path), like.texts, (asked.content,))
            data = restyled(asked.content, like)
            return before, data, _shown(path, like, before, data)

        before, data, shown = await self._workspace.within(made)
        if before == data:
            return ToolResult(f"{path} is like that already.")
        await require_file_permission([path], shown, self._approvals, context)
        await self._workspace.write([FileWrite(path, data, before)], context.call)
        did = "Made" if before is None else "Replaced"
        return ToolResult(
            f"{did} {path} ({len(data)} bytes).",
            shown=bounded(shown, chars_max=DIFF_CHARS_MAX),
            paths=(str(path),),
        )


def replaced_at(tree: FileTree, path: RelativePath) -> bytes | None:
    """Return the bytes of the file to be replaced; None if it does not exist."""
    found = tree.look(path)
    if found is None:
        return None
    if found.sort is not FileKind.FILE:
        raise ToolRefused(reason=f"{path} is a {found.sort}, and no file")
    if found.size > FILE_BYTES_MAX:
        raise ToolRefused(reason=f"{path} has {found.size} bytes: too many to be replaced")
    return tree.read(path, FILE_BYTES_MAX + 1)


def _shown(path: RelativePath, like: Document | None, before: bytes | None, data: bytes) -> str:
    if is_binary(before or b"") or is_binary(data):
        return f"{path}: {len(before or b'')} bytes became {len(data)}"
    return diff(str(path), None if like is None else like.texts, parsed(data).texts)
