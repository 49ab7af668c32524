"""Tool that edits lines of a file, if they are unchanged since they were read."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from holdfast.agent.arguments import fields, given, several, text
from holdfast.agent.failures import ToolRefused
from holdfast.agent.model import FileKind, FileWrite, ToolResult, ToolSpec
from holdfast.agent.permission_rules import single_line
from holdfast.agent.permissions import Permissions, require_file_permission
from holdfast.agent.ports import FileTree, ToolContext, Workspace
from holdfast.agent.text import PAGE_MAX
from holdfast.agent.tools.documents import Document, EditOperation, Span, around, edit_of, edited
from holdfast.agent.tools.patch_format import bounded, diff
from holdfast.agent.tools.paths import named
from holdfast.agent.tools.read import DIFF_CHARS_MAX, text_at
from holdfast.nouns import RelativePath

_EDITS_MAX: Final = 100

_SPEC: Final = ToolSpec(
    name="edit",
    description=(
        "Change lines of a file, named by the anchors NUMBER:HASH that read and search show. All "
        "edits of a call name the lines as they were read, before any of them; all are made, or "
        "none. If a line has changed since, nothing is done and the lines of now are shown."
    ),
    parameters=fields(
        ("path", "edits"),
        path=text("The file, relative to the project."),
        edits=several(
            "What to change.",
            fields(
                ("operation", "start"),
                operation=text(
                    "What to do with the lines from start through through.",
                    of=tuple(EditOperation),
                ),
                start=text("Anchor of the first line, such as 12:a3f0."),
                through=text("Anchor of the last line, inclusive; without it only start."),
                text=text("The new lines, whole, with their indentation; not for delete."),
            ),
        ),
    ),
)


class _Edit(msgspec.Struct, frozen=True):
    operation: Literal["replace", "insert_before", "insert_after", "delete"]
    start: str
    through: str | None = None
    text: str | None = None


class _Given(msgspec.Struct, frozen=True):
    path: str
    edits: Annotated[list[_Edit], Meta(min_length=1, max_length=_EDITS_MAX)]


class EditTool:
    """Edits lines by their anchors."""

    spec = _SPEC
    only_reads = False

    def __init__(self, workspace: Workspace, approvals: Permissions) -> None:
        self._workspace, self._approvals = workspace, approvals

    def title(self, arguments: dict[str, object]) -> str:
        return f"Edit {single_line(given(arguments, _Given).path)}"

    async def use(self, arguments: dict[str, object], context: ToolContext) -> ToolResult:
        """Apply all edits or none, and return the new lines."""
        asked = given(arguments, _Given)
        path = named(asked.path, self._workspace.root)
        edits = [edit_of(e.start, e.through, e.operation, e.text) for e in asked.edits]

        def made(tree: FileTree) -> tuple[bytes, Document, list[Span], str]:
            before, data = own_text_at(tree, path)
            after, spans = edited(str(path), before, edits)
            return data, after, spans, diff(str(path), before.texts, after.texts)

        data, after, spans, shown = await self._workspace.within(made)
        fresh = after.encoded()
        if fresh == data:
            raise ToolRefused(reason=f"nothing would change in {path}")
        await require_file_permission([path], shown, self._approvals, context)
        await self._workspace.write([FileWrite(path, fresh, data)], context.call)
        now = around(after.texts, spans) or "(the file is empty)"
        return ToolResult(
            f"Changed {path}. These lines are there now:\n{bounded(now, chars_max=PAGE_MAX)}",
            shown=bounded(shown, chars_max=DIFF_CHARS_MAX),
            paths=(str(path),),
        )


def own_text_at(tree: FileTree, path: RelativePath) -> tuple[Document, bytes]:
    """Read a text file to be changed; refuses symlinks."""
    found = tree.look(path)
    if found is not None and found.sort is FileKind.LINK:
        raise ToolRefused(reason=f"{path} is a link: change the file that it leads to")
    return text_at(tree, path)
