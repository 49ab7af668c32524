"""Write a session down for others: all of it, without what nobody else may know."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import msgspec

from holdfast.app.sessions import KeptSession, Sessions
from holdfast.app.settings import Settings
from holdfast.cli.commands import Request
from holdfast.cli.core.turn_lines import record_of
from holdfast.cli.model import Outcome
from holdfast.cli.provider_keys import known_secrets
from holdfast.cli.record_lines import json_line
from holdfast.failures import Failure
from holdfast.nouns import printable
from holdfast.telemetry import Redactor, ValueRedactor
from holdfast.world import SystemDisk, write_all

_SCHEMA: Final = 1


def export(request: Request, settings: Settings) -> Outcome:
    """A session without secrets, on standard output or in a file that was not there before."""
    sessions = Sessions(settings)
    session = sessions.find(request.argument)
    lines = exported(sessions, session, Redactor(known_secrets(settings)))
    output = request.value("--output")
    if output is None:
        return Outcome(answer="".join(lines))
    _write_new(Path(output).absolute(), lines)
    return Outcome(hint=f"{session.id} is in {printable(output)}. Look through it first.")


def exported(sessions: Sessions, session: KeptSession, redactor: Redactor) -> Iterator[str]:
    """What the session is about, then each of its records, a line of JSON each."""
    clean = ValueRedactor(redactor.text)
    about: dict[str, object] = msgspec.to_builtins(session)
    yield json_line(clean.mapping({"schema": _SCHEMA, "type": "session", **about}))
    for each in sessions.records(session):
        yield json_line(clean.mapping(record_of(*each)))


def _write_new(path: Path, lines: Iterator[str]) -> None:
    """Write all of it to a file of this name, or leave none."""
    disk = SystemDisk()
    with ExitStack() as undo:
        file = disk.create(path, mode=0o600)
        undo.callback(_discard, disk, path)
        try:
            for line in lines:
                write_all(file, line.encode(), path=path)
            file.sync()
        finally:
            file.close()
        disk.sync_directory(path.parent)
        undo.pop_all()


def _discard(disk: SystemDisk, path: Path) -> None:
    with suppress(Failure):  # what went wrong before matters more
        disk.unlink(path)
