"""Names of processes, and what is meant by them."""

from __future__ import annotations

import pytest

from holdfast.cli.core.process_name import meant, process_name
from holdfast.exec.wire import ListedProcess, OperatorProcess


def _of(session: str, name: str) -> OperatorProcess:
    listed = ListedProcess(name, ("x",), 1, False, 0, 1, exited=False, exit_code=None, closed=False)
    return OperatorProcess(session, attached=False, process=listed)


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
    known = [
        _of("s", "make-1"),
        _of("s", "make-12"),
        _of("s", "cat-1"),
        _of("s", "x"),
        _of("t", "x"),
    ]

    assert [f"{each.session_id}/{each.process.process_id}" for each in meant(word, known)] == found
