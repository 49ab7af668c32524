"""Tool that applies a patch to several files, completely or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from holdfast.agent.arguments import fields, given, text
from holdfast.agent.failures import ToolRefused
from holdfast.agent.model import (
    FileChange,
    FileRemoval,
    FileRename,
    FileWrite,
    ToolResult,
    ToolSpec,
)
from holdfast.agent.permission_rules import single_line
from holdfast.agent.permissions import Permissions, require_file_permission
from holdfast.agent.ports import FileTree, ToolContext, Workspace
from holdfast.agent.tools.edit import own_text_at
from holdfast.agent.tools.patch_format import (
    AddFile,
    DeleteFile,
    FilePatch,
    bounded,
    diff,
    parsed_patch,
    patched,
)
from holdfast.agent.tools.paths import named
from holdfast.agent.tools.read import DIFF_CHARS_MAX
from holdfast.agent.tools.write import replaced_at
from holdfast.nouns import RelativePath

_SPEC: Final = ToolSpec(
    name="apply_patch",
    description=(
        "Apply a patch to any number of files, all of it or nothing. The form is:\n"
        "*** Begin Patch\n*** Update File: src/a.py\n@@ def f():\n     x = 1\n-    y = 2\n"
        "+    y = 3\n*** Add File: new.txt\n+a line\n*** Delete File: old.txt\n*** End Patch\n"
        "Lines that stay or go must be in the file to the letter, and in one place: give enough of "
        "them, or an @@ line that they come after. *** Move to: PATH after Update renames the file."
    ),
    parameters=fields(("patch",), patch=text("The patch.")),
)


class _Given(msgspec.Struct, frozen=True):
    patch: str


class _Planned(NamedTuple):
    """Planned changes of one file, with a summary, a diff and the affected paths."""

    changes: list[FileChange]
    words: str
    shown: str
    paths: list[RelativePath]


class PatchTool:
    """Changes several files by a patch."""

    spec = _SPEC
    only_reads = False

    def __init__(self, workspace: Workspace, approvals: Permissions) -> None:
        self._workspace, self._approvals = workspace, approvals

    def title(self, arguments: dict[str, object]) -> str:
        try:
            paths = [each.path for each in parsed_patch(given(arguments, _Given).patch)]
        except ToolRefused:
            return "Apply a patch"
        return single_line(f"Patch {', '.join(paths)}")

    async def use(self, arguments: dict[str, object], context: ToolContext) -> ToolResult:
        """Apply the whole patch, or nothing."""
        files = parsed_patch(given(arguments, _Given).patch)
        root = self._workspace.root
        plans = await self._workspace.within(
            lambda tree: [_planned(tree, each, root) for each in files]
        )
        paths = [path for plan in plans for path in plan.paths]
        _refuse_twice(paths)
        shown = "\n".join(plan.shown for plan in plans)
        await require_file_permission(paths, shown, self._approvals, context)
        changes = [change for plan in plans for change in plan.changes]
        await self._workspace.write(changes, context.call)
        return ToolResult(
            "\n".join(plan.words for plan in plans),
            shown=bounded(shown, chars_max=DIFF_CHARS_MAX),
            paths=tuple(map(str, paths)),
        )


def _planned(tree: FileTree, asked: FilePatch, root: str) -> _Planned:
    path = named(asked.path, root)
    if isinstance(asked, AddFile):
        if tree.look(path) is not None:
            raise ToolRefused(reason=f"{path} is there already; use Update File")
        data = "".join(f"{line}\n" for line in asked.lines).encode("utf-8", "surrogateescape")
        shown = diff(str(path), None, asked.lines)
        return _Planned([FileWrite(path, data, None)], f"Made {path}.", shown, [path])
    if isinstance(asked, DeleteFile):
        gone = replaced_at(tree, path)
        if gone is None:
            raise ToolRefused(reason=f"there is no {path}")
        shown = f"--- a/{path}\n+++ /dev/null\n({len(gone)} bytes)"
        return _Planned([FileRemoval(path)], f"Deleted {path}.", shown, [path])
    before, data = own_text_at(tree, path)
    after = patched(str(path), before, asked.hunks)
    changes: list[FileChange] = []
    if after != before:
        changes.append(FileWrite(path, after.encoded(), data))
    shown = diff(str(path), before.texts, after.texts)
    if asked.target is None:
        return _Planned(changes, f"Changed {path}.", shown, [path])
    target = named(asked.target, root)
    changes.append(FileRename(path, target))
    words = f"Moved {path} to {target}."
    return _Planned(changes, words, f"rename {path} => {target}\n{shown}", [path, target])


def _refuse_twice(paths: Sequence[RelativePath]) -> None:
    twice = next((path for path in paths if paths.count(path) > 1), None)
    if twice is not None:
        raise ToolRefused(reason=f"the patch is about {twice} twice")
