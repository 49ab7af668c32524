"""Render blocks as lines for a terminal; control characters from outside are escaped."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from typing import Final

from rich.console import Console, RenderableType
from rich.markdown import Markdown
from rich.text import Text
from rich.theme import Theme

from holdfast.nouns import cut, printable, prose
from holdfast.runners.model import PlanProgress
from holdfast.terminal.model import (
    Block,
    Card,
    Note,
    Plan,
    Prompted,
    Style,
    Trouble,
    Words,
    changed,
    step_line,
)

FOLD: Final = 8  # lines of output that a card shows
_WIDEST: Final = 120  # columns of what is read as text
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
_BLANKS: Final = re.compile(r" +((?:\x1b\[[0-9;]*m)*)$")
_PROMPT_MOST: Final = 2_000  # characters of a prompt that are shown
# Words are in the ink of the terminal, which can be read on whatever ground it has; colours are for
# marks, for changes, and for what can be told from the rest by them alone.
_MARKDOWN: Final = {
    "markdown.code": "magenta",
    "markdown.code_block": "magenta",
    "markdown.block_quote": "italic",
    "markdown.item.number": "bold",
    "markdown.link": "bold",
    "markdown.link_url": "underline",
    "markdown.table.border": "dim",
    "markdown.table.header": "bold",
}


def _theme(*, mark: str, good: str, bad: str, careful: str) -> Theme:
    strong = {"mark": f"bold {mark}", "broken": f"bold {bad}", "warning": f"bold {careful}"}
    return Theme({**_MARKDOWN, **strong, "good": good, "bad": bad, "careful": careful})


_DARK: Final = _theme(mark="cyan", good="green", bad="red", careful="yellow")
_LIGHT: Final = _theme(mark="blue", good="color(28)", bad="color(124)", careful="color(130)")


def draw(
    blocks: Iterable[Block], style: Style, *, after: Block | None = None, is_whole: bool = False
) -> str:
    """Blocks as text with escape sequences; long ones are folded unless `is_whole`.

    `after` is the block that stands before them already.
    """
    console = Console(
        file=io.StringIO(),
        width=max(style.width, 20),
        force_terminal=style.is_coloured,
        no_color=not style.is_coloured,
        color_system="256" if style.is_coloured else None,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        theme=_LIGHT if style.is_light else _DARK,
    )
    drawn: list[str] = []
    for block in blocks:
        with console.capture() as captured:
            _print(console, block, style, is_whole)
        drawn += ["\n"] * _is_apart(after, block)
        drawn.append(_tight(captured.get()) if isinstance(block, Words) else captured.get())
        after = block
    return "".join(drawn)


def _tight(text: str) -> str:
    """Lines without trailing blanks and without consecutive empty ones."""
    lines = [_BLANKS.sub(r"\1", line) for line in text.splitlines()]
    while lines and not _COLOURS.sub("", lines[-1]):
        lines.pop()
    kept = [
        line
        for before, line in zip(["", *lines], lines, strict=False)
        if _COLOURS.sub("", line) or _COLOURS.sub("", before)
    ]
    return "".join(f"{line}\n" for line in kept)


def _is_apart(before: Block | None, block: Block) -> bool:
    """Whether an empty line separates two blocks."""
    together = (Card, Note)
    return before is not None and not (isinstance(before, together) and isinstance(block, together))


def _print(console: Console, block: Block, style: Style, is_whole: bool) -> None:
    match block:
        case Prompted(text, is_steering):
            mark = "»" if is_steering else ">"
            _hang(console, (mark, "mark"), text if is_whole else _begun(text), "bold")
        case Words(text, is_thought):
            width = min(console.width, _WIDEST)
            console.print(_words(text, style, is_thought), width=width)
        case Card():
            _print_card(console, block, FOLD if not is_whole else None)
        case Plan(steps):
            for step in steps:
                is_over = step.progress is PlanProgress.DONE
                mark, _, text = step_line(step).strip().partition(" ")
                _hang(console, (f"  {mark}", ""), text, "dim" if is_over else "")
        case Note(text, is_warning):
            _hang(console, ("!", "warning") if is_warning else (" ", ""), text)
        case Trouble():
            _print_trouble(console, block, is_whole)


def _begun(text: str) -> str:
    """A prompt, truncated: the user knows a long pasted text."""
    lines = text[:_PROMPT_MOST].splitlines()
    if len(lines) <= FOLD and len(text) <= _PROMPT_MOST:
        return text
    left = len(text) - sum(len(line) + 1 for line in lines[:FOLD])
    return "\n".join([*lines[:FOLD], f"… {max(left, 0):,} more characters"])


def _hang(console: Console, mark: tuple[str, str], text: str, tone: str = "") -> None:
    """Text with a coloured mark before the first line, the others indented."""
    sign, ink = mark
    width = min(console.width, _WIDEST) - len(sign) - 1
    for number, line in enumerate(Text(prose(text), tone).wrap(console, width)):
        console.print(Text.assemble((" " * len(sign) if number else sign, ink), " ", line))


def _words(text: str, style: Style, is_thought: bool) -> RenderableType:
    clean = prose(text)
    if style.is_plain or is_thought:
        return Text(clean, style="dim italic" if is_thought and style.is_coloured else "")
    theme = "ansi_light" if style.is_light else "ansi_dark"
    return Markdown(clean, code_theme=theme, hyperlinks=False)


def _print_card(console: Console, card: Card, fold: int | None) -> None:
    tone = {True: "good", False: "bad", None: "careful"}[card.is_ok]
    status = "" if card.status in (None, 0) else f" (exit {card.status})"
    head = cut(f"{printable(card.title)}{status}", console.width - 2, more="…")
    console.print(Text.assemble(("● ", tone), (head, "bold")))
    lines = prose(card.output).rstrip("\n").splitlines()
    shown = lines if fold is None or len(lines) <= fold + 1 else lines[-fold:]
    is_diff = any(line.startswith("@@ ") for line in lines)
    hidden = len(lines) - len(shown)
    if hidden or card.left_out:
        console.print(f"  │ … {_left_out(hidden, card.left_out)}", style="dim")
    for line in shown:
        for part in Text(line).wrap(console, console.width - 4, overflow="fold") or [""]:
            console.print(f"  │ {part}", style=_tone(line, is_diff))
    if card.paths:
        console.print(f"  └ {printable(changed(card.paths))}", style="dim")


def _left_out(lines: int, characters: int) -> str:
    """The note about folded lines, and about characters that were not stored.

    How many lines those characters were is not known, so the lines are no count of all.
    """
    if not characters:
        return f"{lines:,} more lines (Ctrl-O shows them)"
    left = f"{characters:,} characters that were left out"
    return f"{lines:,} more lines that are kept (Ctrl-O shows them), and {left}" if lines else left


def _tone(line: str, is_diff: bool) -> str:
    if not is_diff or line.startswith(("+++ ", "--- ")):
        return "dim"
    return {"+": "good", "-": "bad"}.get(line[:1], "dim")


def _print_trouble(console: Console, trouble: Trouble, is_whole: bool) -> None:
    _hang(console, ("✗", "broken"), printable(trouble.title), "broken")
    _hang(console, (" ", ""), trouble.message)
    for number, offer in enumerate(trouble.offers):
        key = "Enter" if not number else offer.line.strip()
        console.print(f"  → {offer.label} ({key})", style="bold" if not number else "")
    if is_whole:
        for line in trouble.details:
            _hang(console, (" ", ""), printable(line), "dim")
    elif trouble.details:
        console.print("  Details: Ctrl-O", style="dim")
