"""Stored sessions: a directory for each, and the socket of its host."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from holdfast.app.failures import SessionAmbiguous, SessionMissing, SessionReadOnly
from holdfast.app.settings import Settings
from holdfast.host import read_session_journal
from holdfast.host.model import AnyRecord
from holdfast.world import (
    IdMaker,
    SystemClock,
    SystemDisk,
    SystemRandomSource,
    disk_failure,
    last_seq,
    make_private,
    replace_file,
)
from holdfast.world.failures import DiskMissing

RUNNERS: Final = (
    "rehearsal",
    "codex",
    "native",
)  # values of --runner; the first sends nothing over the network
PREFIX: Final = "session"
_ABOUT: Final = "session.json"
_JOURNAL: Final = "journal.jsonl"
TITLE_MOST: Final = 200  # characters of what a session began with that name it
NAME_CELLS: Final = 8  # characters at the end of an id: enough to name a session among one's own


class KeptSession(msgspec.Struct, frozen=True):
    """Metadata of a session (`session.json`); everything else is in its journal."""

    id: str
    project: str
    draft: str
    runner: str
    at_ms: int
    title: str = ""
    options: dict[str, str] = {}


class Sessions:
    """All sessions of one user."""

    def __init__(self, settings: Settings) -> None:
        self._directory = settings.state / "sessions"
        self._runtime = settings.runtime / "hosts"
        self._clock = SystemClock()

    def make(
        self, project: str, draft: str, runner: str, *, title: str, options: dict[str, str]
    ) -> KeptSession:
        """Store a new session with an empty journal."""
        made = KeptSession(
            id=str(IdMaker(self._clock, SystemRandomSource()).make(PREFIX)),
            project=project,
            draft=draft,
            runner=runner,
            at_ms=int(self._clock.now() * 1000),
            title=title,
            options=options,
        )
        make_private(self._directory / made.id)
        replace_file(SystemDisk(), self._directory / made.id / _ABOUT, [msgspec.json.encode(made)])
        return made

    def all(self) -> list[KeptSession]:
        """Every session, the newest first; unreadable ones are skipped."""
        found: list[KeptSession] = []
        for name in sorted(self._names(), reverse=True):
            with suppress(OSError, ValueError):  # ValueError also covers bytes that are not UTF-8
                data = (self._directory / name / _ABOUT).read_bytes()
                found.append(msgspec.json.decode(data, type=KeptSession))
        return found

    def _names(self) -> list[str]:
        try:
            return os.listdir(self._directory)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise disk_failure(error, path=str(self._directory)) from error

    def find(self, name: str | None) -> KeptSession:
        """Find a session by the beginning or end of its id; the newest for None.

        Raises SessionMissing or SessionAmbiguous.
        """
        every = self.all()
        matching = [each for each in every if name is None or name in {each.id, short(each)}]
        if name:
            begins = (name, f"{PREFIX}_{name}")
            matching = matching or [each for each in every if each.id.startswith(begins)]
        if not matching:
            raise SessionMissing(session=name or "")
        if name is not None and len(matching) > 1:
            raise SessionAmbiguous(session=name, count=len(matching))
        return matching[0]

    def is_named(self, name: str) -> bool:
        """Whether a name is exactly the id or the short id of a session."""
        return any(name == short(each) or each.id == name for each in self.all())

    def records(self, session: KeptSession, *, after: int = 0) -> list[tuple[int, AnyRecord]]:
        """The records of its journal with their sequence numbers; safe while a host writes."""
        try:
            return list(read_session_journal(self._directory / session.id / _JOURNAL, after=after))
        except DiskMissing:
            return []

    def last(self, session: KeptSession) -> int:
        """The sequence number of the last record in its journal; 0 if it is empty."""
        try:
            return last_seq(SystemDisk(), self._directory / session.id / _JOURNAL)
        except DiskMissing:
            return 0

    def directory(self, session: KeptSession) -> Path:
        """The directory of a session."""
        return self._directory / session.id

    def socket(self, session: KeptSession) -> Path:
        """The path of the socket of its host; creates the directory."""
        make_private(self._runtime)
        return self._runtime / f"{session.id[-12:]}.sock"


def short(session: KeptSession) -> str:
    """The last characters of the id, which people use as a name."""
    return session.id[-NAME_CELLS:]


def runnable(session: KeptSession) -> KeptSession:
    """The same session; raises SessionReadOnly if it has no runner."""
    if session.runner not in RUNNERS:
        raise SessionReadOnly(session=short(session), tool=session.runner)
    return session
