"""Lay out the processes of a server, for a person and for a program."""

from __future__ import annotations

import re
import shlex
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast.cli.render.style import Look, Tone
from holdfast.cli.render.table import age
from holdfast.exec.model import AWAITS_READER, Detached, Orphan, Output, Page
from holdfast.nouns import cut, printable

SCHEMA = 1
_COMMAND_LEAST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One process, as much of it as a list needs."""

    id: str
    session: str
    is_attached: bool
    argv: tuple[str, ...]
    pid: int | None
    tty: bool
    started_at_ms: int
    status: int | None
    stalled: str | None = None
    is_lost: bool = False


def processes_page(processes: Sequence[Seen], look: Look, *, now: float) -> str:
    """A line for each: its name, its state, since when, and its command."""
    rows = [
        (
            printable(each.id),
            state_of(each),
            age(each.started_at_ms / 1000, now=now),
            printable(shlex.join(_words(each.argv))),
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


def is_internal(process: Seen) -> bool:
    """Whether a process is one of Holdfast itself: the host of a session, or a helper."""
    pairs = zip(process.argv[1:], process.argv[2:], strict=False)
    return any(flag == "-m" and module.startswith("holdfast.") for flag, module in pairs)


def _words(argv: Sequence[str]) -> Sequence[str]:
    """A command in its telling words: how we start programs of our own would fill the line."""
    match argv:
        case [_, "-P", "-m", "holdfast.cli.main", *rest]:
            return ["holdfast", *rest]
        case [_, "-P", "-m", module, *rest] if module.startswith("holdfast."):
            return [module, *rest]
        case _:
            return argv


def orphans_note(orphans: Sequence[Orphan]) -> str:
    """What a person should know of them: who they are, and how to end them."""
    shown = "".join(f"  {each.pid}  {printable(each.command)}\n" for each in orphans)
    return f"These run without a server; holdfast stop --orphans ends them:\n{shown}".rstrip("\n")


def orphan_line(each: Orphan) -> dict[str, object]:
    """An orphan as a record for a program, with the members of any other process."""
    return {
        "schema": SCHEMA,
        "type": "orphan",
        "id": None,
        "session": None,
        "attached": False,
        "argv": [each.command],
        "pid": each.pid,
        "tty": False,
        "startedAtMs": None,
        "exitCode": None,
        "stalled": None,
        "lost": False,
    }


def detached_note(detached: Sequence[Detached]) -> str:
    """What a person should know of these: which they are, and how to end them."""
    shown = "".join(
        f"  {each.pid}  {printable(each.command)}{_started_by(each)}\n" for each in detached
    )
    how = "holdfast stop PROCESS ends a process with all that it started"
    return f"Started by processes above, and left running ({how}):\n{shown}".rstrip("\n")


def _started_by(each: Detached) -> str:
    return f"  (of {printable(each.process)})" if each.process else ""


def detached_line(each: Detached) -> dict[str, object]:
    """The same as a record for a program, with the members of any other process."""
    return {
        "schema": SCHEMA,
        "type": "detached",
        "id": each.process or None,
        "session": each.session,
        "attached": False,
        "argv": [each.command],
        "pid": each.pid,
        "tty": False,
        "startedAtMs": None,
        "exitCode": None,
        "stalled": None,
    }


def ended_note(name: str, status: int) -> str:
    """How a process that was stopped has ended."""
    return f"{printable(name)} has ended ({status})."


def state_of(each: Seen) -> str:
    """What a process is doing, in a word or two."""
    if each.is_lost:
        return "lost"
    if each.status is not None:
        return f"ended ({each.status})"
    if each.stalled is not None:
        return "waits (reader)" if each.stalled == AWAITS_READER else "waits (disk)"
    return "attached" if each.is_attached else "running"


def process_line(each: Seen) -> dict[str, object]:
    """One process as a record for a program."""
    return {
        "schema": SCHEMA,
        "type": "process",
        "id": each.id,
        "session": each.session,
        "attached": each.is_attached,
        "argv": list(each.argv),
        "pid": each.pid,
        "tty": each.tty,
        "startedAtMs": each.started_at_ms,
        "exitCode": each.status,
        "stalled": each.stalled,
        "lost": each.is_lost,
    }


def ended_line(name: str, session: str, status: int | None) -> dict[str, object]:
    """How stopping a process went, as a record; without a status it has not ended."""
    return {
        "schema": SCHEMA,
        "type": "stopped",
        "id": name,
        "session": session,
        "exitCode": status,
    }


def output_line(piece: Output) -> dict[str, object]:
    """A piece of output as a record; bytes need not be text."""
    data = b64encode(piece.data).decode()
    return {
        "schema": SCHEMA,
        "type": "output",
        "seq": piece.seq,
        "stream": piece.stream,
        "dataBase64": data,
    }


def gap_line(first_kept: int) -> dict[str, object]:
    """A record that stands where output is no longer kept."""
    return {"schema": SCHEMA, "type": "gap", "firstSeq": first_kept}


def end_line(page: Page) -> dict[str, object]:
    """The last record of all output: how the process has ended, if it has, and said all."""
    return {
        "schema": SCHEMA,
        "type": "end",
        "exitCode": page.status,
        "closed": page.closed,
        "lost": page.is_lost,
    }


# Name processes so that a person can say which one they mean.

_STEM_MOST = 20


def process_name(program: str, mark: str) -> str:
    """A unique name for a process: its program and a random suffix."""
    stem = re.sub(r"[^A-Za-z0-9_.]+", "", program.rpartition("/")[2])[:_STEM_MOST]
    return f"{stem or 'process'}-{mark}"


def meant(word: str, processes: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Of some sessions and names those that a word means: name, session/name, or a beginning."""
    known = list(processes)
    exact = [(session, name) for session, name in known if word in (name, f"{session}/{name}")]
    return exact or [(session, name) for session, name in known if name.startswith(word)]
