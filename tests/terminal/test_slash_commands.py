"""A typed line is a prompt, a holdfast command, an action of the terminal, or invalid."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.terminal.slash_commands import (
    SLASH_COMMANDS,
    HoldfastCommand,
    InvalidLine,
    ParsedLine,
    PromptText,
    TerminalAction,
    TerminalCommand,
    choice_of,
    completions,
    help_lines,
    parse_line,
)


def meant(line: str) -> ParsedLine:
    return parse_line(line, draft="d1")


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        ("Mend it", PromptText("Mend it")),
        ("  Mend it \n", PromptText("Mend it")),
        ("/etc/hosts is wrong", PromptText("/etc/hosts is wrong")),
        ("//help is a word", PromptText("/help is a word")),
        ("/diff", HoldfastCommand(("draft", "diff", "--draft", "d1"))),
        ("/diff 'a b' c", HoldfastCommand(("draft", "diff", "--draft", "d1", "a b", "c"))),
        ("/publish --only a", HoldfastCommand(("publish", "--draft", "d1", "--only", "a"))),
        ("/restore cp_1", HoldfastCommand(("restore", "cp_1"))),
        ("/restore", InvalidLine("/restore needs ID.")),
        ("/diff 'a", InvalidLine("/diff: a quote is not closed.")),
        ("/model openai/x", TerminalCommand(TerminalAction.MODEL, "openai/x")),
        ("/help", TerminalCommand(TerminalAction.HELP, "")),
        ("/hepl", InvalidLine("Unknown command /hepl. Did you mean /help?")),
        ("/resume", TerminalCommand(TerminalAction.RESUME, "")),
        ("/restor", InvalidLine("Unknown command /restor. Did you mean /restart?")),
        ("/discrd", InvalidLine("Unknown command /discrd. /help lists all commands.")),
        ("/xyzzy", InvalidLine("Unknown command /xyzzy. /help lists all commands.")),
    ],
)
def test_a_line_has_one_meaning(line: str, meaning: ParsedLine) -> None:
    assert meant(line) == meaning


@pytest.mark.parametrize(
    ("argument", "chosen"),
    [
        ("openai/x", {"model": "openai/x"}),
        ("high", {"effort": "high"}),
        ("openai/x  high", {"model": "openai/x", "effort": "high"}),
        ("none a/b", {"model": "a/b", "effort": "none"}),
        ("openai/x much", None),
        ("low high", None),
        ("a/b c/d", None),
        ("gpt-5", None),
    ],
)
def test_a_model_is_named_with_or_without_an_effort(
    argument: str, chosen: dict[str, str] | None
) -> None:
    found = choice_of(argument)

    assert (None if isinstance(found, InvalidLine) else found) == chosen


@given(st.text())
def test_every_line_means_something(line: str) -> None:
    assert isinstance(meant(line), PromptText | HoldfastCommand | TerminalCommand | InvalidLine)


def test_every_deed_has_a_name_and_every_name_a_meaning() -> None:
    assert {each.action for each in SLASH_COMMANDS} >= set(TerminalAction)
    assert len({each.name for each in SLASH_COMMANDS}) == len(SLASH_COMMANDS)
    assert all(
        isinstance(meant(f"/{each.name} x"), HoldfastCommand | TerminalCommand)
        for each in SLASH_COMMANDS
    )


def test_a_slash_becomes_what_begins_so() -> None:
    assert [each.name for each in completions("/che")] == ["checkpoint", "checkpoints"]
    assert [each.name for each in completions("/")] == [each.name for each in SLASH_COMMANDS]
    assert list(completions("/diff ")) == list(completions("words")) == []


@pytest.mark.parametrize("width", [30, 100])
def test_help_lists_everything(width: int) -> None:
    lines = help_lines(width)

    assert max(map(len, lines)) <= width
    heads = [line for line in lines if line.startswith("/")]
    assert all(f"/{each.name}" in head for each, head in zip(SLASH_COMMANDS, heads, strict=True))
    assert "Ctrl-O" in " ".join(lines)
