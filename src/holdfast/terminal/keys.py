"""Which key does what."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from holdfast.terminal.ports import Attended


class Keyed(Protocol):
    """What keys are for: what is typed, and whose conversation it is."""

    @property
    def buffer(self) -> Buffer:
        """What is typed."""
        ...

    @property
    def attended(self) -> Attended:
        """The conversation."""
        ...


def bindings(screen: Keyed) -> KeyBindings:
    """The keys of a screen; all others edit what is typed, as in a shell."""
    keys = KeyBindings()
    buffer = screen.buffer
    is_empty = Condition(lambda: not buffer.text)

    def on(*sequence: str, do: Callable[[], object], only_if: Condition | bool = True) -> None:
        def handle(_: KeyPressEvent) -> None:
            do()

        keys.add(*sequence, filter=only_if)(handle)

    on("enter", do=lambda: _enter(screen))
    on("escape", "enter", do=lambda: buffer.insert_text("\n"))
    on("c-j", do=lambda: _enter(screen))  # so Enter comes if it was typed while another program ran
    on("c-c", do=lambda: _interrupt(screen))
    on("<sigint>", do=lambda: _interrupt(screen))
    on("c-d", do=lambda: screen.attended.leave(), only_if=is_empty)
    on("c-o", do=lambda: screen.attended.unfold())
    on("escape", "escape", do=lambda: screen.attended.go_back(), only_if=is_empty)
    on("c-x", "c-e", do=lambda: buffer.open_in_editor())
    for digit in "123456789":
        on(digit, do=partial(_choose, screen, digit), only_if=is_empty)
    return keys


def _enter(screen: Keyed) -> None:
    buffer = screen.buffer
    state = buffer.complete_state
    if state is not None and state.current_completion is not None:
        buffer.complete_state = None  # what was chosen from the list stands, and is not sent yet
        return
    if buffer.document.char_before_cursor == "\\":
        buffer.delete_before_cursor()
        buffer.insert_text("\n")
        return
    text = buffer.text
    buffer.reset(append_to_history=bool(text.strip()))
    if not screen.attended.enter(text):
        buffer.insert_text(text)


def _interrupt(screen: Keyed) -> None:
    if screen.attended.interrupt(screen.buffer.text):
        screen.buffer.reset(append_to_history=True)  # Up brings it back


def _choose(screen: Keyed, digit: str) -> None:
    if not screen.attended.choose(int(digit)):
        screen.buffer.insert_text(digit)
