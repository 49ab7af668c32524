"""An order says all that a keeper has to know, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.exec.keeper.client_loop import ProcessSpec, TerminalSize

BARE = ProcessSpec(key="k", argv=("true", "x"), cwd="/", env={"A": "1"})
PLAIN: dict[str, object] = {
    "key": "k",
    "argv": ["true", "x"],
    "cwd": "/",
    "env": {"A": "1"},
    "arg0": None,
    "terminal": None,
    "pipe_stdin": False,
}


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (BARE, {}),
        (replace(BARE, terminal=TerminalSize(3, 4)), {"terminal": {"rows": 3, "cols": 4}}),
        (replace(BARE, arg0="-sh", pipe_stdin=True), {"arg0": "-sh", "pipe_stdin": True}),
    ],
)
def test_an_order_as_the_keeper_reads_it(order: ProcessSpec, expected: dict[str, object]) -> None:
    assert order.message() == PLAIN | expected
