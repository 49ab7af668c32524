"""The two who follow a turn: a person, with text and notes, and a program, with records."""

from __future__ import annotations

from dataclasses import asdict

import msgspec

from holdfast.cli.core.look import Look, Tone
from holdfast.cli.core.question_page import subject
from holdfast.cli.core.turn_page import Ended, Noted, Said, TurnPage
from holdfast.cli.core.turn_record import Record, approval_record, event_record, thread_record
from holdfast.cli.model import Json
from holdfast.cli.record_lines import json_line
from holdfast.cli.terminal import Terminal
from holdfast.codex import Approval
from holdfast.nouns import printable
from holdfast.telemetry import Redactor


class PersonView:
    """Shows a turn to a person: what is said on standard output, all else beside it."""

    def __init__(self, terminal: Terminal, look: Look, *, cwd: str) -> None:
        self._terminal, self._look = terminal, look
        self._page = TurnPage(look, cwd=cwd)
        self._clean = Redactor().text

    async def begin(self, thread: str) -> None:
        """Say nothing: the end says how to continue."""

    async def show(self, method: str, params: Json) -> None:
        """Show what one event says."""
        for piece in self._page.take(method, params):
            match piece:
                case Said(text):
                    await self._terminal.say(text)
                case Noted(line):
                    await self._terminal.note(self._clean(line))
                case Ended():
                    await self._terminal.end_line()

    async def note(self, text: str) -> None:
        """Say something of our own."""
        await self._terminal.note(self._look.paint(text, Tone.QUIET))

    async def decided(self, approval: Approval, decision: str) -> None:
        """Say nothing: it was the person who decided."""

    async def declined(self, approval: Approval, why: str) -> None:
        """Say what was declined without asking the person, and why."""
        what = self._clean(printable(f"declined ({why}): {subject(approval)}"))
        sign = self._look.paint(self._look.signs.careful, Tone.CAREFUL)
        await self._terminal.note(f"  {sign} {what}")


class ProgramView:
    """Writes a turn for a program: one JSON object per line, nothing else."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    async def begin(self, thread: str) -> None:
        """Say in which thread the turn runs."""
        await self._write(thread_record(thread))

    async def show(self, method: str, params: Json) -> None:
        """Pass on one event."""
        await self._write(event_record(method, params))

    async def note(self, text: str) -> None:
        """Say nothing: the records say it."""

    async def decided(self, approval: Approval, decision: str) -> None:
        """Say what the person decided."""
        await self._write(approval_record(_asked(approval), decision=decision, why="person"))

    async def declined(self, approval: Approval, why: str) -> None:
        """Say what was declined without asking anyone, and why."""
        await self._write(approval_record(_asked(approval), decision="decline", why=why))

    async def _write(self, record: Record) -> None:
        await self._terminal.say(json_line(record))


View = PersonView | ProgramView


def _asked(approval: Approval) -> Record:
    kind = type(approval).__name__.removesuffix("Approval")
    facts = msgspec.convert(msgspec.to_builtins(asdict(approval)), Record)
    return {"kind": kind[0].lower() + kind[1:], **facts}
