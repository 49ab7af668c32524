"""Lay out what goes on in a session now: what is said, done, planned and asked."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.nouns import cut, printable, prose
from holdfast.runners.model import Asked, Progress, Sort
from holdfast.terminal.core.status import fitted, meter
from holdfast.terminal.model import step_line
from holdfast.terminal.ports import Fragments
from holdfast.terminal.transcript import Transcript, words_of

_OUTPUT_ROWS = 4


def live(transcript: Transcript, rows: int, columns: int) -> Fragments:
    """What goes on, in at most so many rows; what is asked comes last, next to where one types."""
    asked = transcript.question
    below = list(_banner(transcript, columns)) + (list(_asked(asked, columns)) if asked else [])
    plan = list(_plan(transcript, columns))[: max(0, rows - len(below))]
    above = list(_going_on(transcript, columns))
    room = max(0, rows - len(below) - len(plan))
    lines = [*above[len(above) - room :], *plan, *below] if room else [*plan, *below]
    shown = lines[-rows:]
    return [(style, line + "\n" * (at < len(shown))) for at, (style, line) in enumerate(shown, 1)]


def _going_on(transcript: Transcript, columns: int) -> Iterator[tuple[str, str]]:
    for each in transcript.live.values():
        style = "class:quiet" if each.sort is not Sort.TEXT else ""
        for line in prose(each.text).splitlines():
            yield from ((style, part) for part in _folded(line, columns))
    for card in transcript.cards.values():
        yield "class:warning", cut(f"● {printable(card.title)}", columns - 1, more="…")
        for line in prose(card.output).splitlines()[-_OUTPUT_ROWS:]:
            yield "class:quiet", cut(f"  │ {line}", columns - 1, more="…")


def _plan(transcript: Transcript, columns: int) -> Iterator[tuple[str, str]]:
    for step in transcript.plan:
        style = "class:quiet" if step.progress is Progress.DONE else ""
        yield style, cut(step_line(step), columns - 1, more="…")


def _banner(transcript: Transcript, columns: int) -> Iterator[tuple[str, str]]:
    if transcript.unkept is not None:
        why = printable(str(transcript.unkept.get("userMessage", "")))
        yield "class:bad", cut(f"! Not written down yet: {why}", columns - 1, more="…")
    if transcript.is_reconnecting:
        yield "class:warning", "reconnecting…"
    if transcript.is_unresponsive:
        yield (
            "class:warning",
            cut("backend unresponsive — restart? (/restart)", columns - 1, more="…"),
        )
    if transcript.session.waiting:
        for each in transcript.session.waiting[:3]:
            text = printable(" ".join(words_of(each).split()))
            yield "class:quiet", cut(f"queued: {text}", columns - 1, more="…")


def _asked(asked: Asked, columns: int) -> Iterator[tuple[str, str]]:
    for part in _folded(f"? {printable(asked.title)}", columns):
        yield "class:strong", part
    for line in prose(asked.detail).splitlines()[:12]:
        yield from (("", f"  {part}") for part in _folded(line, columns - 2))
    for number, choice in enumerate(asked.choices, 1):
        meaning = f" — {printable(choice.meaning)}" if choice.meaning else ""
        yield "", cut(f"  {number} {printable(choice.word)}{meaning}", columns - 1, more="…")


def _folded(line: str, columns: int) -> list[str]:
    """Lines of a width; a terminal would fold them anyway, and we could not count them."""
    width = max(columns - 1, 4)
    return [line[at : at + width] for at in range(0, len(line), width)] or [""]


def status_line(transcript: Transcript, runner: str, draft: str, columns: int) -> str:
    """Who works where, how full and how dear it is, and what can be pressed."""
    session = transcript.session
    state = str(session.phase)
    hint = "Ctrl-C ends the turn" if transcript.is_busy else "/help"
    parts = [state, runner, *meter(session.used), hint, f"draft {draft[-8:]}"]
    return fitted([printable(part) for part in parts], columns - 1)


def helper_lines(transcript: Transcript) -> list[str]:
    """The helpers of an agent, each with its number and what it did last."""
    lines: list[str] = []
    for number, card in enumerate(transcript.agents(), 1):
        mark = {True: "✓", False: "✗", None: "▸"}[card.is_ok]
        lines.append(f"{number:>3} {mark} {card.title}")
        lines += [f"      {line}" for line in card.output.splitlines()[-1:]]
    return [*lines, "/agents NUMBER shows all of one."] if lines else ["The agent has no helpers."]
