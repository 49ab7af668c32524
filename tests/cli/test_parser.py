"""What words mean, and what is said of those that mean nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.commands import VERSION_LINE, Misuse, Request
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
    ],
)
def test_meaning(words: list[str], expected: Request) -> None:
    assert parse(words) == expected


@pytest.mark.parametrize(
    ("words", "problem", "read_on"),
    [
        (["docto"], "unknown command 'docto'. Did you mean 'doctor'?", "holdfast --help"),
        (["zzz"], "unknown command 'zzz'", "holdfast --help"),
        (["--verison"], "unknown option '--verison'. Did you mean '--version'?", "holdfast --help"),
        (
            ["doctor", "--jsn"],
            "unknown option '--jsn'. Did you mean '--json'?",
            "holdfast doctor --help",
        ),
        (["doctor", "now"], "unknown argument 'now'", "holdfast doctor --help"),
    ],
)
def test_words_without_meaning(words: list[str], problem: str, read_on: str) -> None:
    assert parse(words) == Misuse(problem, read_on, is_json=False)


@pytest.mark.parametrize("words", [["--color"], ["--color", "pink"], ["doctor", "--color"]])
def test_an_option_with_a_wrong_value_is_misuse(words: list[str]) -> None:
    found = parse(words)

    assert isinstance(found, Misuse)
    assert "--color" in found.problem


def test_a_program_that_asks_wrongly_is_answered_as_a_program() -> None:
    found = parse(["doctr", "--json"])

    assert isinstance(found, Misuse)
    assert found.is_json


@pytest.mark.parametrize(
    ("words", "begin"),
    [
        ([], "usage: holdfast [options] <command>"),
        (["-h"], "usage: holdfast [options] <command>"),
        (["doctor", "--help"], "usage: holdfast doctor [options]"),
        (["--help", "doctor"], "usage: holdfast doctor [options]"),
    ],
)
def test_help_teaches(words: list[str], begin: str) -> None:
    found = parse(words)

    assert isinstance(found, Request)
    assert found.page is not None
    assert found.page.startswith(begin)
    assert "holdfast doctor --json" in found.page


@given(st.lists(st.sampled_from(["doctor", "--json", "-v", "--color", "x", "", "-", "--", "-h"])))
def test_any_words_are_understood_or_refused(words: list[str]) -> None:
    assert isinstance(parse(words), (Request, Misuse))
