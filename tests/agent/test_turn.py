"""Whatever a tool returns, shows or asks, the turn goes on and everything can be written."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from holdfast.agent.failures import GoingInCircles
from holdfast.agent.loop import CONTINUE, STOP, STOP_AT
from holdfast.agent.memory import MemoryWorkspace
from holdfast.agent.model import (
    Task,
    TaskProgress,
    ToolResult,
    ToolUseEnded,
    TurnOutcome,
    TurnOver,
    TurnQuestion,
)
from holdfast.agent.permissions import Permissions
from holdfast.agent.ports import Tool, ToolContext
from holdfast.agent.providers.scripted import ScriptedAnswer, ScriptedCall
from holdfast.agent.tools.documents import hash_of
from holdfast.agent.tools.edit import EditTool
from holdfast.agent.tools.patch import PatchTool
from holdfast.agent.tools.read import ReadTool
from holdfast.agent.tools.write import WriteTool
from holdfast.agent.turn_context import TurnItem
from holdfast.runners.native import translated
from holdfast.workbench.failures import BatchRefused
from tests.agent.conversing import Small, Stand, calls, echo, end, only, says

pytestmark = pytest.mark.anyio

LATIN = "größe = 1\nname = 'x'\nende\n".encode("latin-1")
ESCAPED = b"a\xffb".decode("utf-8", "surrogateescape")


def file_tools(workspace: MemoryWorkspace) -> tuple[Tool, ...]:
    approvals = Permissions()
    return (
        ReadTool(workspace),
        EditTool(workspace, approvals),
        WriteTool(workspace, approvals),
        PatchTool(workspace, approvals),
    )


def anchor(number: int) -> str:
    text = LATIN.split(b"\n")[number - 1].decode("utf-8", "surrogateescape")
    return f"{number}:{hash_of(text)}"


def edit(start: int, text: str, path: str = "f") -> ScriptedCall:
    made = {"operation": "replace", "start": anchor(start), "text": text}
    return ScriptedCall("edit", {"path": path, "edits": [made]})


def patch(*lines: str) -> ScriptedCall:
    body = "\n".join(("*** Begin Patch", "*** Update File: f", *lines, "*** End Patch"))
    return ScriptedCall("apply_patch", {"patch": body})


def written(told: list[TurnItem]) -> bytes:
    """What a host writes down of a turn."""
    return b"\n".join(map(msgspec.json.encode, translated(told)))


@pytest.mark.promise("A1")
@pytest.mark.parametrize("known", [(), ("secret-key-value",)], ids=["no key", "a key"])
@pytest.mark.parametrize(
    ("call", "after"),
    [
        (edit(2, "name = 'y'"), LATIN.replace(b"'x'", b"'y'")),
        (edit(1, "size = 1"), LATIN.replace("größe".encode("latin-1"), b"size")),
        (edit(1, "gr��e = 2"), LATIN),
        (patch(" gr��e = 1", "-name = 'x'", "+name = 'y'"), LATIN.replace(b"'x'", b"'y'")),
        (patch("-gr��e = 1", "+gr��e = 2"), LATIN),
        (ScriptedCall("write", {"path": "f", "content": "größe\n"}), "größe\n".encode()),
        (ScriptedCall("write", {"path": "f", "content": "gr��e\n"}), LATIN),
        (ScriptedCall("write", {"path": "b", "content": "text\n"}), LATIN),
        (ScriptedCall("read", {"path": "f"}), LATIN),
    ],
    ids=lambda each: each.tool if isinstance(each, ScriptedCall) else "",
)
async def test_a_file_that_is_not_utf8_keeps_every_byte_that_was_not_changed(
    call: ScriptedCall, after: bytes, known: tuple[str, ...]
) -> None:
    workspace = MemoryWorkspace({"f": LATIN, "b": b"\xff\xfe\0\x01"})
    stand = Stand([ScriptedAnswer(calls=(call,)), says("Done.")], tools=file_tools(workspace))
    stand.config = replace(stand.config, known=lambda: known)

    told = await stand.whole()

    assert end(told) == TurnOver(TurnOutcome.COMPLETED)
    assert workspace.files["f"] == after
    written(told)
    (used,) = only(told, ToolUseEnded)
    changes = "f" if workspace.files["f"] != LATIN else None
    assert used.done.is_error == (changes is None and call.tool != "read" and "b" not in str(call))


@pytest.mark.promise("A1")
async def test_a_protected_file_that_is_not_utf8_is_asked_for_and_changed() -> None:
    workspace = MemoryWorkspace({".envrc": LATIN})
    script = [ScriptedAnswer(calls=(edit(2, "name = 'y'", ".envrc"),)), says("Done.")]
    stand = Stand(script, tools=file_tools(workspace))

    told = await stand.whole(answer="Allow once")

    assert end(told) == TurnOver(TurnOutcome.COMPLETED)
    assert len(only(told, TurnQuestion)) == 1
    assert workspace.files[".envrc"] == LATIN.replace(b"'x'", b"'y'")
    written(told)


class _Odd(Small):
    """A tool of which every text holds a byte that is not UTF-8."""

    def title(self, arguments: dict[str, object]) -> str:
        del arguments
        return ESCAPED


async def _odd(arguments: dict[str, object], context: ToolContext) -> ToolResult:
    del arguments
    context.show(ESCAPED)
    await context.ask(ESCAPED, ESCAPED, ("yes", "no"))
    return ToolResult(
        ESCAPED, shown=ESCAPED, paths=(ESCAPED,), plan=(Task(1, ESCAPED, TaskProgress.OPEN),)
    )


@pytest.mark.promise("A1")
@pytest.mark.parametrize("known", [(), ("secret-key-value",)], ids=["no key", "a key"])
async def test_every_text_that_leaves_a_tool_is_valid_unicode(known: tuple[str, ...]) -> None:
    stand = Stand([calls("odd"), says("Done.")], tools=[_Odd("odd", _odd)])
    stand.config = replace(stand.config, known=lambda: known)

    told = await stand.whole(answer="yes")

    assert end(told) == TurnOver(TurnOutcome.COMPLETED)
    assert written(told).decode().count("a�b") == 8
    assert "tool: a�b" in stand.history


def quiet_checks(times: int, *between: ScriptedCall) -> list[ScriptedAnswer]:
    check = ScriptedCall("look", {"text": "all quiet"})
    return [ScriptedAnswer(calls=(check, *between)) for _ in range(times)]


async def _changing(arguments: dict[str, object], context: ToolContext) -> ToolResult:
    del context
    return ToolResult("Changed f.", paths=(str(arguments.get("text", "f")),))


@pytest.mark.promise("A1")
async def test_a_check_that_stays_quiet_while_files_are_edited_is_healthy() -> None:
    tools = [Small("look", echo, only_reads=True), Small("edit", _changing)]
    lines = quiet_checks(STOP_AT + 2, ScriptedCall("edit", {"text": "same"}))
    stand = Stand([*lines, says("Done.")], tools=tools)

    told = await stand.whole()

    assert end(told) == TurnOver(TurnOutcome.COMPLETED)
    assert not [each for each in stand.history if "by now" in each]


@pytest.mark.promise("A1")
@pytest.mark.parametrize("changes", [True, False])
async def test_a_command_that_changes_files_without_a_word_is_no_repetition(changes: bool) -> None:
    """A shell does not know which files its commands change: the draft does."""
    revision = 0

    async def step(arguments: dict[str, object], context: ToolContext) -> ToolResult:
        nonlocal revision
        del arguments, context
        revision += changes
        return ToolResult("exit status 0")

    async def revised() -> int:
        return revision

    tools = [Small("look", echo, only_reads=True), Small("shell", step)]
    lines = quiet_checks(STOP_AT + 2, ScriptedCall("shell", {"text": "make step"}))
    stand = Stand([*lines, says("Done.")], tools=tools)
    stand.config = replace(stand.config, revision=revised)

    told = await stand.whole(answer=STOP)

    ending = TurnOutcome.COMPLETED if changes else TurnOutcome.FAILED
    assert end(told).ending is ending
    assert any("by now" in each for each in stand.history) is not changes


@pytest.mark.promise("A1")
async def test_a_draft_that_cannot_be_looked_at_does_not_end_the_turn() -> None:
    async def revised() -> int:
        raise BatchRefused(reasons=("no",))

    stand = Stand([*quiet_checks(3), says("Done.")])
    stand.config = replace(stand.config, revision=revised)

    assert end(await stand.whole()) == TurnOver(TurnOutcome.COMPLETED)


@pytest.mark.promise("A1")
@pytest.mark.parametrize("answer", [CONTINUE, STOP])
async def test_repetition_is_told_to_the_model_and_then_the_person_decides(answer: str) -> None:
    stand = Stand([*quiet_checks(STOP_AT + 1), says("Done.")])

    told = await stand.whole(answer=answer)

    (asked,) = only(told, TurnQuestion)
    assert asked.choices == (CONTINUE, STOP)
    results = [each for each in stand.history if each.startswith("tool")]
    assert ["by now" in each for each in results[:6]] == [False, False, True, False, False, True]
    if answer == CONTINUE:
        assert end(told) == TurnOver(TurnOutcome.COMPLETED)
        return
    failure = end(told).failure
    assert failure is not None
    assert failure["code"] == GoingInCircles.code
    assert len(results) == STOP_AT
