"""Only a person who is there can say yes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from holdfast.cli.terminal import confirmed
from tests.cli.pretending import terminal
from tests.cli.running import environment

_PROGRAM = (
    "from holdfast.cli.terminal import confirmed\n"
    "print('answer:', confirmed('All of it.\\n', 'Do it? '))"
)


@pytest.mark.parametrize(
    ("typed", "meaning"), [("y\n", True), ("\n", False), ("what\nno\n", False)]
)
def test_an_answer_is_what_the_person_types(typed: str, meaning: bool, tmp_path: Path) -> None:
    argv: Sequence[str] = [sys.executable, "-c", _PROGRAM]
    env = {**environment(tmp_path), "PYTHONPATH": ":".join(sys.path)}
    with terminal(argv, env) as screen:
        for prompt, line in zip(("Do it? ", "y or n: "), typed.splitlines(), strict=False):
            screen.expect(prompt)
            screen.type(f"{line}\n")
        status, shown = screen.end()

    assert (status, f"answer: {meaning}" in shown) == (0, True)


def test_where_nobody_is_the_answer_is_no(capsys: pytest.CaptureFixture[str]) -> None:
    assert not confirmed("All of it.\n", "Do it? ")
    assert capsys.readouterr().err == "All of it.\n"
