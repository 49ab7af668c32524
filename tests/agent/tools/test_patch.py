"""A patch changes all of its files or none of them."""

from __future__ import annotations

import pytest

from holdfast.agent.failures import PermissionRefused, ToolRefused
from holdfast.agent.memory import MemoryToolContext, MemoryWorkspace
from holdfast.agent.permissions import Permissions
from holdfast.agent.tools.patch import PatchTool
from holdfast.workbench.failures import BatchRefused

pytestmark = pytest.mark.anyio

FILES = {"a": b"1\n2\n3\n", "b": b"x\n", "old": b"o\n", "c": b"same\n"}


async def apply(workspace: MemoryWorkspace, *lines: str) -> tuple[str, str | None]:
    patch = "\n".join(["*** Begin Patch", *lines, "*** End Patch"])
    done = await PatchTool(workspace, Permissions()).use({"patch": patch}, MemoryToolContext())
    return done.text, done.shown


async def test_all_files_are_changed_together() -> None:
    workspace = MemoryWorkspace(FILES)

    text, shown = await apply(
        workspace,
        "*** Update File: a",
        " 1",
        "-2",
        "+two",
        "*** Add File: d/new",
        "+n",
        "*** Update File: b",
        "*** Move to: d/b",
        "@@",
        "-x",
        "+y",
        "*** Delete File: old",
        "*** Update File: c",
        "*** Move to: e",
    )

    assert workspace.files == {
        "a": b"1\ntwo\n3\n",
        "d/b": b"y\n",
        "d/new": b"n\n",
        "e": b"same\n",
    }
    assert text.split("\n") == [
        "Changed a.", "Made d/new.", "Moved b to d/b.", "Deleted old.", "Moved c to e.",
    ]  # fmt: skip
    assert shown is not None and "rename b => d/b\n--- a/b\n+++ b/b" in shown


@pytest.mark.promise("W2")
@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["*** Update File: b", "-z", "+y"], "to the letter"),
        (["*** Add File: b", "+y"], "there already"),
        (["*** Delete File: nope"], "there is no nope"),
        (["*** Update File: nope", "-z", "+y"], "there is no nope"),
        (["*** Add File: ../x", "+y"], "outside"),
        (["*** Add File: ./a", "+y"], "there already"),
        (["*** Update File: b", "*** Move to: a", "-x", "+y"], "twice"),
    ],
)
async def test_one_file_that_does_not_fit_stops_all(lines: list[str], reason: str) -> None:
    workspace = MemoryWorkspace(FILES)

    with pytest.raises(ToolRefused, match=reason):
        await apply(workspace, "*** Update File: a", "-2", "+two", *lines)

    assert workspace.files == dict(sorted(FILES.items()))


async def test_a_name_that_is_taken_stops_all() -> None:
    workspace = MemoryWorkspace(FILES)
    with pytest.raises(BatchRefused):
        await apply(workspace, "*** Update File: b", "*** Move to: a", "-x", "+y")
    assert workspace.files == dict(sorted(FILES.items()))


@pytest.mark.promise("C22")
@pytest.mark.parametrize(
    "lines",
    [
        ["*** Add File: .git/hooks/post-checkout", "+evil"],
        ["*** Update File: a", "*** Move to: .envrc", "-2", "+evil"],
    ],
)
async def test_what_programs_obey_is_not_patched_without_leave(lines: list[str]) -> None:
    workspace = MemoryWorkspace(FILES)
    with pytest.raises(PermissionRefused):
        await apply(workspace, *lines)
    assert workspace.files == dict(sorted(FILES.items()))


def test_it_is_told_to_the_person() -> None:
    tool = PatchTool(MemoryWorkspace(), Permissions())
    patch = "*** Begin Patch\n*** Delete File: a\n*** Delete File: b\n*** End Patch"

    assert tool.spec.name == "apply_patch"
    assert tool.title({"patch": patch}) == "Patch a, b"
    assert tool.title({"patch": "?"}) == "Apply a patch"
