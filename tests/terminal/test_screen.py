"""A screen heeds keys, and what goes on is laid out once for each drawing."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from holdfast.terminal.ports import Fragments
from holdfast.terminal.screen import Screen

pytestmark = pytest.mark.anyio


class Attentive:
    """A conversation that counts how often it is laid out, and ends at the first line."""

    def __init__(self) -> None:
        self.laid_out = self.drawn = 0
        self.entered: list[str] = []
        self.screen: Screen

    def shown(self, rows: int, columns: int) -> Fragments:
        assert (rows > 0, columns > 0) == (True, True)
        self.laid_out += 1
        return [("", f"laid out {self.laid_out}")]

    def status(self, columns: int) -> str:
        self.drawn += 1  # a line that prompt_toolkit asks for once
        return "idle"[:columns]

    def enter(self, text: str) -> bool:
        self.entered.append(text)
        self.screen.end()
        return True

    def choose(self, number: int) -> bool:
        return number < 0

    def interrupt(self, typed: str) -> bool:
        return bool(typed)

    def leave(self) -> None: ...

    def go_back(self) -> None: ...

    def unfold(self) -> None: ...


async def test_what_goes_on_is_laid_out_once_for_each_drawing(tmp_path: Path) -> None:
    attended = Attentive()
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        screen = Screen(attended, history=tmp_path / "h", root=tmp_path, is_coloured=False)
        attended.screen = screen
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(screen.run)
            with anyio.fail_after(30):
                await screen.is_drawn.wait()
                keys.send_text("1 thing\r")

    assert attended.entered == ["1 thing"]
    assert attended.laid_out == attended.drawn
