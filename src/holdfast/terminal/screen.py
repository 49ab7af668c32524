"""The live area at the bottom of the terminal; finished blocks go to the scrollback above it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from heapq import nsmallest
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import anyio
from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.styles import Style

from holdfast.nouns import cut, printable
from holdfast.terminal.ports import Attended, Fragments
from holdfast.terminal.slash_commands import completions


class Keyed(Protocol):
    """What key bindings act on."""

    @property
    def buffer(self) -> Buffer:
        """The input buffer."""
        ...

    @property
    def attended(self) -> Attended:
        """The callbacks."""
        ...


def bindings(screen: Keyed) -> KeyBindings:
    """Key bindings of the screen; all other keys edit the input buffer."""
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


_SHOWN: Final = 50


class Completed(NamedTuple):
    """A completion that replaces the last characters, with its help text."""

    text: str
    replaces: int
    meaning: str = ""


def completed(typed: str, root: Path) -> Iterator[Completed]:
    """Completions of a line up to the cursor: slash commands, and files below `root` after @."""
    for slash in completions(typed):
        yield Completed(f"/{slash.name} ", len(typed), slash.meaning)
    word = typed.rsplit(maxsplit=1)[-1] if typed and not typed[-1].isspace() else ""
    if word.startswith("@"):
        yield from islice(_files(word[1:], root), _SHOWN)


def _files(begun: str, root: Path) -> Iterator[Completed]:
    directory, _, name = begun.rpartition("/")
    if directory.startswith(("/", "~")) or ".." in directory.split("/"):
        return
    found: list[tuple[str, bool]] = []
    with suppress(OSError), os.scandir(root / directory) as entries:
        for entry in entries:
            is_hidden = entry.name.startswith(".") and not name.startswith(".")
            if (
                entry.name.startswith(name)
                and not is_hidden
                and printable(entry.name) == entry.name
            ):
                found.append((entry.name, entry.is_dir(follow_symlinks=False)))
    head = f"{directory}/" if directory else ""
    for each, is_directory in nsmallest(_SHOWN, found):
        yield Completed(f"@{head}{each}" + ("/" if is_directory else " "), len(begun) + 1)


INPUT_ROWS: Final = 10
_MENU_ROWS: Final = 6
_KEY: Final = 0.1  # seconds within which the rest of a key comes that a terminal sends as several
_SECOND_KEY: Final = 0.6  # seconds within which the second key of two is pressed
_STYLE: Final = Style.from_dict(
    {
        "prompt": "bold ansicyan",
        "status": "dim",
        "quiet": "dim",
        "warning": "ansiyellow",
        "bad": "bold ansired",
        "good": "ansigreen",
        "strong": "bold",
        "chosen": "reverse",
    }
)


class Screen:
    """The input line, the question and the live view, drawn at the cursor."""

    def __init__(self, attended: Attended, *, history: Path, root: Path, is_coloured: bool) -> None:
        self._attended = attended
        self.buffer = Buffer(
            completer=ThreadedCompleter(_Completer(root)),  # a directory may be large
            complete_while_typing=True,
            history=FileHistory(str(_private(history))),
            multiline=True,
            name="input",
        )
        self._app: Application[None] = Application(
            layout=Layout(self._layout()),
            key_bindings=bindings(self),
            style=_STYLE if is_coloured else Style([]),
            full_screen=False,
            erase_when_done=True,
            mouse_support=False,
            refresh_interval=1.0,
        )
        self._app.ttimeoutlen = _KEY
        self._app.timeoutlen = _SECOND_KEY
        self.is_drawn = anyio.Event()
        self._app.after_render += self._drawn
        self._is_printing = anyio.Lock()
        self._shown: tuple[int, Fragments] = (-1, [])  # by which drawing

    async def run(self) -> None:
        """Draw and handle keys until the user leaves."""
        await self._app.run_async(handle_sigint=False, set_exception_handler=False)

    def redraw(self) -> None:
        """Schedule a redraw."""
        self._app.invalidate()

    def end(self) -> None:
        """End the event loop of the screen."""
        if self._app.is_running and self._app.future is not None and not self._app.future.done():
            self._app.exit()

    async def above(self, text: str) -> None:
        """Write text to the scrollback, above the live area."""
        async with self._is_printing:
            await run_in_terminal(lambda: _write(self._app, text))

    async def aside(self, work: Callable[[], int]) -> int:
        """Suspend the screen while a function uses the terminal; return its result."""
        async with self._is_printing:
            return await run_in_terminal(work, in_executor=True)

    @property
    def attended(self) -> Attended:
        """The callbacks."""
        return self._attended

    def _drawn(self, _: Application[None]) -> None:
        self.is_drawn.set()

    def _layout(self) -> HSplit:
        live = Window(
            FormattedTextControl(lambda: FormattedText(self._live())),
            dont_extend_height=True,
            wrap_lines=True,
        )
        menu = Window(
            FormattedTextControl(lambda: FormattedText(self._menu())),
            height=Dimension(max=_MENU_ROWS),
            dont_extend_height=True,
        )
        typed = Window(
            BufferControl(self.buffer),
            get_line_prefix=_prefix,
            height=Dimension(min=1, max=INPUT_ROWS),
            dont_extend_height=True,
            wrap_lines=True,
        )
        status = Window(
            FormattedTextControl(lambda: FormattedText(self._status())),
            height=1,
            dont_extend_height=True,
        )
        has_live = Condition(lambda: bool(self._live()))
        has_menu = Condition(lambda: self.buffer.complete_state is not None)
        return HSplit(
            [
                ConditionalContainer(live, has_live),
                Window(height=1, dont_extend_height=True),  # a blank line after the conversation
                typed,
                ConditionalContainer(menu, has_menu),
                status,
            ]
        )

    def _live(self) -> Fragments:
        """The live lines, cached per redraw, because prompt_toolkit asks several times."""
        drawing = self._app.render_counter
        if self._shown[0] != drawing:
            size = self._app.output.get_size()
            rows = max(3, size.rows - INPUT_ROWS - 4)
            self._shown = (drawing, self._attended.shown(rows, size.columns))
        return self._shown[1]

    def _status(self) -> Fragments:
        return [("class:status", self._attended.status(self._app.output.get_size().columns))]

    def _menu(self) -> Fragments:
        state = self.buffer.complete_state
        if state is None:
            return []
        first = max(0, (state.complete_index or 0) - _MENU_ROWS + 1)
        columns = self._app.output.get_size().columns
        lines: Fragments = []
        for number, each in enumerate(state.completions[first : first + _MENU_ROWS], first):
            line = cut(f"  {each.text.strip():<14} {each.display_meta_text}", columns, more="…")
            is_chosen = number == state.complete_index
            lines.append(("class:chosen" if is_chosen else "class:quiet", line + "\n"))
        return lines


class _Completer(Completer):
    """Completer for slash commands and files."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def get_completions(
        self,
        document: Document,
        complete_event: CompleteEvent,  # noqa: ARG002  # its interface
    ) -> Iterable[Completion]:
        """Yield completions of the text before the cursor."""
        for each in completed(document.text_before_cursor, self._root):
            yield Completion(each.text, -each.replaces, display_meta=each.meaning)


def _prefix(line: int, wrapped: int) -> FormattedText:
    """The prompt mark of the first input line; blanks below it."""
    return FormattedText([("class:prompt", "  " if line or wrapped else "> ")])


def _write(app: Application[None], text: str) -> None:
    app.output.write_raw(text.replace("\n", "\r\n"))
    app.output.flush()


def _private(path: Path) -> Path:
    """History in a file with mode 0600: prompts may hold secrets."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
    return path
