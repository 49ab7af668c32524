"""Lay out the live part of a session: streamed text, running tools, plan and question."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from holdfast.nouns import cut, printable, prose
from holdfast.runners.model import DeltaKind, PlanProgress, QuestionAsked, UsageUpdated
from holdfast.terminal.model import step_line
from holdfast.terminal.ports import Fragments
from holdfast.terminal.transcript import Transcript, words_of


def meter(used: UsageUpdated | None) -> list[str]:
    """Context use and cost, as far as the provider reports them."""
    if used is None:
        return []
    found: list[str] = []
    if used.window_tokens and used.context_tokens:
        found.append(f"{min(100, round(100 * used.context_tokens / used.window_tokens))}% context")
    if used.cost_usd is not None:
        found.append(f"${used.cost_usd:.2f}")
    return found


def cost_lines(used: UsageUpdated | None) -> list[str]:
    """Tokens and cost of the session in full."""
    if used is None:
        return ["Nothing was asked of a model yet, as far as the agent says."]
    cost = "unknown" if used.cost_usd is None else f"${used.cost_usd:.4f}"
    room = "" if used.window_tokens is None else f" of {used.window_tokens:,}"
    return [
        f"model    {used.model or 'unknown'}",
        f"input    {used.input_tokens:,} tokens, {used.cached_tokens:,} of them cached",
        f"output   {used.output_tokens:,} tokens",
        f"context  {used.context_tokens:,}{room} tokens",
        f"cost     {cost}",
    ]


def fitted(parts: list[str], width: int, *, between: str = " · ") -> str:
    """As many parts as fit into the width; the last one, a hint, is dropped first."""
    line = ""
    for part in parts:
        longer = f"{line}{between}{part}" if line else part
        if len(longer) > width:
            break
        line = longer
    return line[:width]


_OUTPUT_ROWS = 4
_NARROW = 60
_SILENT = 10.0  # seconds without a word of a model or a tool before that is said


def live(transcript: Transcript, rows: int, columns: int) -> Fragments:
    """The live lines, at most `rows`; a question comes last, next to the input."""
    asked = transcript.question
    below = [*_banner(transcript, columns), *(_asked(asked, columns) if asked else ())]
    plan = _apart(_plan(transcript, columns))[: max(0, rows - len(below))]
    room = max(0, rows - len(below) - len(plan) - 1)
    above = _apart(_going_on(transcript, room, columns))
    lines = (
        [*above[max(0, len(above) - room) :], *plan, *_apart(below)] if room else [*plan, *below]
    )
    *shown, last = lines[-rows:] or [[]]
    return [*(piece for line in shown for piece in (*line, ("", "\n"))), *last]


def _apart(lines: Iterable[Fragments]) -> list[Fragments]:
    """Lines preceded by an empty one; nothing if there are none."""
    found = list(lines)
    return [[("", "")], *found] if found else []


def _going_on(transcript: Transcript, rows: int, columns: int) -> Iterator[Fragments]:
    for each in transcript.live.values():
        style = "class:quiet" if each.sort is not DeltaKind.TEXT else ""
        end = each.text[-rows * columns :] if rows else ""  # more of it is not seen
        for line in prose(end).splitlines():
            yield from ([(style, part)] for part in _folded(line, columns))
    for card in transcript.cards.values():
        title = cut(printable(card.title), columns - 3, more="…")
        yield [("class:warning", "● "), ("class:strong", title)]
        for line in prose(card.output).splitlines()[-_OUTPUT_ROWS:]:
            yield [("class:quiet", cut(f"  │ {line}", columns - 1, more="…"))]


def _plan(transcript: Transcript, columns: int) -> Iterator[Fragments]:
    for step in transcript.plan:
        style = "class:quiet" if step.progress is PlanProgress.DONE else ""
        yield [(style, cut(step_line(step), columns - 1, more="…"))]


def _banner(transcript: Transcript, columns: int) -> Iterator[Fragments]:
    if transcript.unkept is not None:
        why = printable(str(transcript.unkept.get("userMessage", "")))
        yield [("class:bad", cut(f"! Not written down yet: {why}", columns - 1, more="…"))]
    if transcript.is_reconnecting:
        yield [("class:strong", "reconnecting…")]
    what, seconds = transcript.awaited
    if what and transcript.is_busy and seconds >= _SILENT:
        said = f"waiting for {printable(what)}, {seconds:.0f} s"
        yield [("class:quiet", cut(said, columns - 1, more="…"))]
    if transcript.is_unresponsive:
        said = "backend unresponsive — restart? (/restart)"
        yield [("class:strong", cut(said, columns - 1, more="…"))]
    if transcript.session.waiting:
        for each in transcript.session.waiting[:3]:
            text = printable(" ".join(words_of(each).split()))
            yield [("class:quiet", cut(f"queued: {text}", columns - 1, more="…"))]


def _asked(asked: QuestionAsked, columns: int) -> Iterator[Fragments]:
    for number, part in enumerate(_folded(printable(asked.title), columns - 2)):
        yield [("class:warning", "  " if number else "? "), ("class:strong", part)]
    for line in prose(asked.detail).splitlines()[:12]:
        yield from ([("", f"  {part}")] for part in _folded(line, columns - 2))
    for number, choice in enumerate(asked.choices, 1):
        meaning = f" — {printable(choice.meaning)}" if choice.meaning else ""
        word = cut(f"{printable(choice.word)}{meaning}", columns - 5, more="…")
        yield [("class:prompt", f"  {number} "), ("", word)]


def _folded(line: str, columns: int) -> list[str]:
    """Lines wrapped at `width`: lines that the terminal wraps would break the row count."""
    width = max(columns - 1, 4)
    if len(line) <= width:
        return [line]
    return textwrap.wrap(
        line, width, expand_tabs=False, replace_whitespace=False, break_on_hyphens=False
    ) or [""]


def status_line(transcript: Transcript, runner: str, draft: str, columns: int) -> str:
    """The status line: state, runner, context use, cost and key hints."""
    session = transcript.session
    state = str(session.phase)
    stop = "Ctrl-C ends the turn" if columns > _NARROW else "Ctrl-C ends it"
    hint = stop if transcript.is_busy else "/help"
    parts = [state, runner, *meter(session.used), hint, f"draft {draft[-8:]}"]
    return fitted([printable(part) for part in parts], columns - 1)


def helper_lines(transcript: Transcript) -> list[str]:
    """Subagents, each with its number and last event."""
    lines: list[str] = []
    for number, card in enumerate(transcript.agents(), 1):
        mark = {True: "✓", False: "✗", None: "▸"}[card.is_ok]
        lines.append(f"{number:>3} {mark} {card.title}")
        lines += [f"      {line}" for line in card.output.splitlines()[-1:]]
    return [*lines, "/agents NUMBER shows all of one."] if lines else ["The agent has no helpers."]
