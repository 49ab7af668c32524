"""Edits land together on the lines they were made for, and files stay what they are."""

from __future__ import annotations

import pytest

from holdfast.agent.failures import EditStale, PermissionRefused, ToolRefused
from holdfast.agent.memory import MemoryToolContext, MemoryWorkspace
from holdfast.agent.permission_rules import PermissionAnswer
from holdfast.agent.permissions import Permissions
from holdfast.agent.tools.documents import hash_of, tagged
from holdfast.agent.tools.edit import EditTool

pytestmark = pytest.mark.anyio

DOS = b"\xef\xbb\xbfone\r\ntwo\r\nthree"


def change(operation: str, line: str, text: str | None = None) -> dict[str, object]:
    number, _, content = line.partition(" ")
    asked: dict[str, object] = {"operation": operation, "start": f"{number}:{hash_of(content)}"}
    return asked if text is None else {**asked, "text": text}


async def test_edits_land_together_in_the_style_of_the_file() -> None:
    workspace, context = MemoryWorkspace({"f": DOS}), MemoryToolContext("call_1")
    edits = [change("replace", "1 one", "ONE\nMORE"), change("insert_after", "3 three", "four\n")]

    done = await EditTool(workspace, Permissions()).use({"path": "f", "edits": edits}, context)

    assert workspace.files["f"] == b"\xef\xbb\xbfONE\r\nMORE\r\ntwo\r\nthree\r\nfour"
    assert done.paths == ("f",)
    lines = tagged(["ONE", "MORE", "two", "three", "four"])
    assert done.text == "\n".join(["Changed f. These lines are there now:", *lines])
    assert done.shown == (
        "--- a/f\n+++ b/f\n@@ -1,3 +1,5 @@\n-one\n+ONE\n+MORE\n two\n three\n+four"
    )


async def test_one_stale_edit_stops_all() -> None:
    workspace = MemoryWorkspace({"f": DOS})
    edits = [change("delete", "1 one"), change("delete", "2 TWO")]

    with pytest.raises(EditStale) as caught:
        await EditTool(workspace, Permissions()).use(
            {"path": "f", "edits": edits}, MemoryToolContext()
        )

    assert workspace.files["f"] == DOS
    assert tagged(["two"], 2)[0] in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"path": "f", "edits": [change("replace", "2 two", "two")]}, "nothing would change"),
        ({"path": "f", "edits": []}, "do not fit"),
        ({"path": "f", "edits": [{"operation": "chop", "start": "1:aaaa"}]}, "do not fit"),
        ({"path": "x", "edits": [change("delete", "1 one")]}, "there is no x"),
    ],
)
async def test_what_cannot_be_done_is_said(arguments: dict[str, object], reason: str) -> None:
    with pytest.raises(ToolRefused, match=reason):
        await EditTool(MemoryWorkspace({"f": DOS}), Permissions()).use(
            arguments, MemoryToolContext()
        )


@pytest.mark.promise("C22")
async def test_a_file_that_programs_obey_needs_leave_for_exactly_this_change() -> None:
    workspace = MemoryWorkspace({"sub/.envrc": b"one\n"})
    tool = EditTool(workspace, Permissions())
    context = MemoryToolContext()
    asked: dict[str, object] = {"path": "sub/.envrc", "edits": [change("replace", "1 one", "two")]}

    with pytest.raises(PermissionRefused):
        await tool.use(asked, context)
    assert workspace.files == {"sub/.envrc": b"one\n"}
    title, detail, _, is_permission = context.asked[0]
    assert (title, is_permission) == ("May the agent change files that programs obey?", True)
    assert detail.startswith("file: sub/.envrc\nchange: --- a/sub/.envrc\n    +++ b/sub/.envrc\n")

    await tool.use(asked, MemoryToolContext(answers=[PermissionAnswer.ONCE]))
    assert workspace.files == {"sub/.envrc": b"two\n"}


def test_it_is_told_to_the_person() -> None:
    tool = EditTool(MemoryWorkspace(), Permissions())

    assert tool.spec.name == "edit"
    assert tool.title({"path": "f", "edits": [change("delete", "1 one")]}) == "Edit f"
