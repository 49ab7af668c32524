"""How Codex's questions are put, and what answers mean."""

from __future__ import annotations

import pytest

from holdfast.cli.render.codex import (
    CHARACTERS_MOST,
    LINES_MOST,
    Permission,
    decision_of,
    input_answer,
    input_page,
    input_prompt,
    question_page,
    subject,
)
from holdfast.cli.render.style import FINE, Look
from holdfast.codex import (
    Approval,
    ApprovalDecision,
    CommandApproval,
    FileChangeApproval,
    InputApproval,
    PermissionsApproval,
    ToolApproval,
)
from holdfast.codex.wire.generated import (
    AddPatchChangeKind,
    FileUpdateChange,
    UpdatePatchChangeKind,
)

LOOK = Look(80, is_coloured=False, signs=FINE)
OF = {"thread": "t", "turn": "u", "item": "i"}
OPTIONS = (("Postgres", "big"), ("SQLite", "small"))


def command(text: str, *, cwd: str = "/p", reason: str = "", host: str = "") -> CommandApproval:
    return CommandApproval(**OF, command=text, cwd=cwd, reason=reason, host=host)


def changes(*diffs: str) -> FileChangeApproval:
    kinds = (UpdatePatchChangeKind(move_path="/p/9"), AddPatchChangeKind())
    each = zip(diffs, kinds, ("/p/0", "/p/1"), strict=False)
    all_of_them = tuple(FileUpdateChange(diff=d, kind=k, path=p) for d, k, p in each)
    return FileChangeApproval(**OF, reason="", changes=all_of_them)


MORE = PermissionsApproval(**OF, reason="net", cwd="/p", permissions={"network": True})
CALL = ToolApproval(**OF, server="s", reason="Allow it?", arguments={"a": 1})


@pytest.mark.parametrize(
    ("line", "decision"),
    [
        ("y\n", ApprovalDecision.ACCEPT),
        (" A \n", ApprovalDecision.ACCEPT_FOR_SESSION),
        ("n", ApprovalDecision.DECLINE),
        ("c", ApprovalDecision.CANCEL),
        ("", None),
        ("yes", None),
        ("yy", None),
        ("\x1b[A", None),
    ],
)
def test_only_one_letter_is_an_answer(line: str, decision: ApprovalDecision | None) -> None:
    assert decision_of(line) is decision


@pytest.mark.parametrize(
    ("approval", "lines"),
    [
        (
            command("rm -rf x\necho \x1b[2J", reason="tidy"),
            [
                "? Codex wants to run this in /p",
                "  | rm -rf x",
                "  | echo \\x1b[2J",
                "  because: tidy",
            ],
        ),
        (command("ls", cwd=""), ["? Codex wants to run", "  | ls"]),
        (command("curl x", host="x.org"), ["? Codex wants to reach x.org", "  | curl x"]),
        (
            changes("-a\n+b\n", "+c"),
            [
                "? Codex wants to change files",
                "  | update /p/0 to /p/9",
                "  | -a",
                "  | +b",
                "  | add /p/1",
                "  | +c",
            ],
        ),
        (
            CALL,
            [
                "? Codex wants to call a tool of the MCP server s",
                "  | {",
                '  |   "a": 1',
                "  | }",
                "  because: Allow it?",
            ],
        ),
        (
            MORE,
            [
                "? Codex wants more permissions in /p",
                "  | {",
                '  |   "network": true',
                "  | }",
                "  because: net",
            ],
        ),
    ],
)
def test_what_is_asked_for_is_shown_exactly(approval: Permission, lines: list[str]) -> None:
    assert question_page(approval, LOOK).splitlines() == lines


@pytest.mark.parametrize("text", ["x\n" * (LINES_MOST + 1), "x" * (CHARACTERS_MOST + 5)])
def test_what_is_not_shown_is_said_not_to_be(text: str) -> None:
    last = question_page(command(text), LOOK).splitlines()[-1]

    assert last.endswith("more characters, which are not shown")


def test_no_text_can_pass_for_the_end_of_a_question() -> None:
    page = question_page(command("ls\u2028?\x85\r\n? Codex wants to run ls"), LOOK)

    assert [line for line in page.split("\n")[1:-1] if not line.startswith("  | ")] == []


def test_codex_may_ask_for_words() -> None:
    assert input_page("Which\nbase?", OPTIONS, LOOK).splitlines() == [
        "? Codex wants to know",
        "  | Which",
        "  | base?",
        "  1  Postgres: big",
        "  2  SQLite: small",
    ]
    assert input_prompt(OPTIONS) == "A number, or your own words: "
    assert input_prompt(()) == "Your answer: "


@pytest.mark.parametrize(
    ("line", "answer"),
    [("2\n", "SQLite"), ("0\n", "0"), ("3\n", "3"), (" MySQL \n", "MySQL"), ("²\n", "²")],
)
def test_a_number_is_the_option(line: str, answer: str) -> None:
    assert input_answer(line, OPTIONS) == answer


@pytest.mark.parametrize(
    ("approval", "text"),
    [
        (command("ls"), "run ls"),
        (command("curl", host="x.org"), "reach x.org"),
        (changes("+a"), "change /p/0"),
        (changes(), "change files"),
        (MORE, "get more permissions"),
        (CALL, "call a tool of the MCP server s"),
        (InputApproval(**OF, questions=()), "ask you something"),
    ],
)
def test_a_subject_is_a_few_words(approval: Approval, text: str) -> None:
    assert subject(approval) == text
