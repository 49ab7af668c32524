"""Names of processes, and what is meant by them."""

from __future__ import annotations

import pytest

from holdfast.cli.render.processes import meant, process_name


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("make", "make-0a"),
        ("/usr/bin/g++", "g-0a"),
        ("/", "process-0a"),
        ("a" * 30, "a" * 20 + "-0a"),
    ],
)
def test_a_name_says_which_program(program: str, name: str) -> None:
    assert process_name(program, "0a") == name


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("make-1", ["s/make-1"]),
        ("cat", ["s/cat-1"]),
        ("x", ["s/x", "t/x"]),
        ("t/x", ["t/x"]),
        ("make", ["s/make-1", "s/make-12"]),
        ("nobody", []),
    ],
)
def test_what_a_word_means(word: str, found: list[str]) -> None:
    known = [("s", "make-1"), ("s", "make-12"), ("s", "cat-1"), ("s", "x"), ("t", "x")]

    assert [f"{session}/{name}" for session, name in meant(word, known)] == found
