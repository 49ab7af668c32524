"""A typed line is words for the agent, a command of ours, a deed of the terminal, or wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.terminal.slash_commands import (
    SLASHES,
    Deed,
    Do,
    Meant,
    Run,
    Say,
    Wrong,
    choice_of,
    completions,
    help_lines,
    meaning_of,
)


def meant(line: str) -> Meant:
    return meaning_of(line, draft="d1")


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        ("Mend it", Say("Mend it")),
        ("  Mend it \n", Say("Mend it")),
        ("/etc/hosts is wrong", Say("/etc/hosts is wrong")),
        ("//help is a word", Say("/help is a word")),
        ("/diff", Run(("draft", "diff", "--draft", "d1"))),
        ("/diff 'a b' c", Run(("draft", "diff", "--draft", "d1", "a b", "c"))),
        ("/publish --only a", Run(("publish", "--draft", "d1", "--only", "a"))),
        ("/restore cp_1", Run(("restore", "cp_1"))),
        ("/restore", Wrong("/restore wants ID.")),
        ("/diff 'a", Wrong("/diff: a quote is not closed.")),
        ("/model openai/x", Do(Deed.MODEL, "openai/x")),
        ("/help", Do(Deed.HELP, "")),
        ("/hepl", Wrong("There is no /hepl. Is /help meant?")),
        ("/resume", Do(Deed.RESUME, "")),
        ("/restor", Wrong("There is no /restor. Is /restart meant?")),
        ("/discrd", Wrong("There is no /discrd. /help lists all.")),
        ("/xyzzy", Wrong("There is no /xyzzy. /help lists all.")),
    ],
)
def test_a_line_has_one_meaning(line: str, meaning: Meant) -> None:
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

    assert (None if isinstance(found, Wrong) else found) == chosen


@given(st.text())
def test_every_line_means_something(line: str) -> None:
    assert isinstance(meant(line), Say | Run | Do | Wrong)


def test_every_deed_has_a_name_and_every_name_a_meaning() -> None:
    assert {each.deed for each in SLASHES} >= set(Deed)
    assert len({each.name for each in SLASHES}) == len(SLASHES)
    assert all(isinstance(meant(f"/{each.name} x"), Run | Do) for each in SLASHES)


def test_a_slash_becomes_what_begins_so() -> None:
    assert [each.name for each in completions("/che")] == ["checkpoint", "checkpoints"]
    assert [each.name for each in completions("/")] == [each.name for each in SLASHES]
    assert list(completions("/diff ")) == list(completions("words")) == []


@pytest.mark.parametrize("width", [30, 100])
def test_help_lists_everything(width: int) -> None:
    lines = help_lines(width)

    assert max(map(len, lines)) <= width
    heads = [line for line in lines if line.startswith("/")]
    assert all(f"/{each.name}" in head for each, head in zip(SLASHES, heads, strict=True))
    assert "Ctrl-O" in " ".join(lines)
