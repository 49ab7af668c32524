"""What words mean, and what is said of those that mean nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.declarations import VERSION_LINE, Misuse, Request
from holdfast.cli.parser import parse


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["doctor"], Request("doctor")),
        (["doctor", "--json"], Request("doctor", is_json=True)),
        (["--color", "never", "doctor"], Request("doctor", colour="never")),
        (["doctor", "--color=always", "-v"], Request("doctor", is_verbose=True, colour="always")),
        (["--version"], Request(page=VERSION_LINE)),
        (["doctor", "--version"], Request("doctor", page=VERSION_LINE)),
        (["codex", "ask", "Fix it"], Request("codex ask", argument="Fix it")),
        (["codex", "ask", "-"], Request("codex ask", argument="-")),
        (["codex", "ask", "--json"], Request("codex ask", is_json=True)),
        (["codex", "ask", "--", "-v"], Request("codex ask", argument="-v")),
        (
            ["--color", "never", "codex", "ask", "--timeout", "1.5", "Fix it", "--cwd=."],
            Request(
                "codex ask",
                colour="never",
                argument="Fix it",
                given=(("--cwd", "."), ("--timeout", "1.5")),
            ),
        ),
        (["codex", "threads", "--limit", "3"], Request("codex threads", given=(("--limit", "3"),))),
        (
            ["sandbox", "--net", "a", "--write", ".", "--net=b", "--json", "--", "make", "--net"],
            Request(
                "sandbox",
                is_json=True,
                given=(("--write", "."), ("--net", "a"), ("--net", "b")),
                words=("make", "--net"),
            ),
        ),
        (
            ["draft", "diff", "a", "--stat", "b"],
            Request("draft diff", given=(("--stat", "True"),), words=("a", "b")),
        ),
        (["draft", "diff"], Request("draft diff")),
        (
            ["-C", "/p", "publish", "--only", "a", "b", "--force", "c", "--only", "d"],
            Request(
                "publish",
                given=(
                    ("--only", "a"),
                    ("--only", "b"),
                    ("--only", "d"),
                    ("--force", "c"),
                    ("--project", "/p"),
                ),
            ),
        ),
        (
            ["restore", "cp_1", "--only", "a"],
            Request("restore", argument="cp_1", given=(("--only", "a"),)),
        ),
    ],
)
def test_meaning(words: list[str], expected: Request) -> None:
    assert parse(words) == expected


@pytest.mark.parametrize(
    ("words", "problem", "read_on", "command"),
    [
        (["docto"], "unknown command 'docto'. Did you mean 'doctor'?", "holdfast", "docto"),
        (["zzz"], "unknown command 'zzz'", "holdfast", "zzz"),
        (["--verison"], "unknown option '--verison'. Did you mean '--version'?", "holdfast", ""),
        (
            ["doctor", "--jsn"],
            "unknown option '--jsn'. Did you mean '--json'?",
            "holdfast doctor",
            "doctor",
        ),
        (["doctor", "now"], "unknown argument 'now'", "holdfast doctor", "doctor"),
        (
            ["codex", "aks", "Fix it"],
            "unknown command 'codex aks'. Did you mean 'codex ask'?",
            "holdfast codex",
            "codex aks",
        ),
        (
            ["codex", "ask", "Fix", "it"],
            "PROMPT is one argument: put it in quotes",
            "holdfast codex ask",
            "codex ask",
        ),
        (
            ["sandbox", "make"],
            "what is to be run stands after --, as in: holdfast sandbox -- make",
            "holdfast sandbox",
            "sandbox",
        ),
    ],
)
def test_words_without_meaning(words: list[str], problem: str, read_on: str, command: str) -> None:
    assert parse(words) == Misuse(problem, f"{read_on} --help", is_json=False, command=command)


@pytest.mark.parametrize(
    "words",
    [
        ["--color"],
        ["--color", "pink"],
        ["doctor", "--color"],
        ["codex", "ask", "--sandbox", "pink"],
        ["codex", "ask", "--timeout", "soon"],
        ["codex", "ask", "--timeout", "0"],
        ["codex", "ask", "--timeout", "inf"],
        ["codex", "ask", "--timeout", "nan"],
        ["codex", "ask", "--resume", ""],
        ["codex", "threads", "--limit", "0"],
        ["codex", "threads", "--limit", "1.5"],
    ],
)
def test_an_option_with_a_wrong_value_is_misuse(words: list[str]) -> None:
    found = parse(words)
    option = next(word for word in words if word.startswith("--"))

    assert isinstance(found, Misuse)
    assert option in found.problem


def test_a_program_that_asks_wrongly_is_answered_as_a_program() -> None:
    found = parse(["doctr", "--json"])

    assert isinstance(found, Misuse)
    assert found.is_json


@pytest.mark.parametrize(
    ("words", "begin", "example"),
    [
        ([], "holdfast [options] <command>", "holdfast doctor --json"),
        (["-h"], "holdfast [options] <command>", "holdfast codex ask"),
        (["doctor", "--help"], "holdfast doctor [options]", "holdfast doctor --json"),
        (["--help", "doctor"], "holdfast doctor [options]", "holdfast doctor --json"),
        (["codex"], "holdfast codex <command>", "holdfast codex threads"),
        (["codex", "-h"], "holdfast codex <command>", "holdfast codex ask"),
        (["codex", "ask", "-h"], "holdfast codex ask [options] PROMPT", "codex ask --resume"),
    ],
)
def test_help_teaches(words: list[str], begin: str, example: str) -> None:
    found = parse(words)

    assert isinstance(found, Request)
    assert found.page is not None
    assert found.page.startswith(f"usage: {begin}\n")
    assert example in found.page


WORDS = ["doctor", "codex", "ask", "--json", "--cwd", "-v", "--color", "x", "", "-", "--", "-h"]


@given(st.lists(st.sampled_from(WORDS)))
def test_any_words_are_understood_or_refused(words: list[str]) -> None:
    assert isinstance(parse(words), (Request, Misuse))


def test_a_group_names_its_commands() -> None:
    request = parse(["draft"])

    assert isinstance(request, Request)
    assert "\n  draft discard  delete a draft\n" in (request.page or "")
