"""Lay out the processes of a server, for a person and for a program."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from holdfast.cli.core.look import Look, Tone
from holdfast.cli.core.printable import cut, printable
from holdfast.cli.core.threads_page import age
from holdfast.exec.wire import OperatorProcess

SCHEMA = 1
_COMMAND_LEAST = 10


def processes_page(processes: Sequence[OperatorProcess], look: Look, *, now: float) -> str:
    """A line for each: its name, its state, since when, and its command."""
    rows = [
        (
            printable(each.process.process_id),
            state_of(each),
            age(each.process.started_at_ms / 1000, now=now),
            printable(shlex.join(each.process.argv)),
        )
        for each in processes
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    left = max(look.width - sum(widths) - 6, _COMMAND_LEAST)
    return "".join(
        f"{name:<{widths[0]}}  {state:<{widths[1]}}  "
        f"{look.paint(f'{when:<{widths[2]}}', Tone.QUIET)}  "
        f"{cut(command, left, more=look.signs.more)}\n"
        for name, state, when, command in rows
    )


def state_of(each: OperatorProcess) -> str:
    """What a process is doing, in a word or two."""
    if each.process.exited:
        return f"ended ({each.process.exit_code})"
    return "attached" if each.attached else "running"


def process_line(each: OperatorProcess) -> dict[str, object]:
    """One process as a record for a program."""
    return {
        "schema": SCHEMA,
        "type": "process",
        "id": each.process.process_id,
        "session": each.session_id,
        "attached": each.attached,
        "argv": list(each.process.argv),
        "pid": each.process.pid or None,
        "tty": each.process.tty,
        "startedAtMs": each.process.started_at_ms,
        "exitCode": each.process.exit_code,
    }
