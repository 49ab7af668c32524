"""Keep sessions: a directory for each, and where its host is to be reached."""

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
)  # whom a session can be with, the first unless one is named
PREFIX: Final = "session"
_ABOUT: Final = "session.json"
_JOURNAL: Final = "journal.jsonl"
TITLE_MOST: Final = 200  # characters of what a session began with that name it
NAME_CELLS: Final = 8  # characters at the end of an id: enough to name a session among one's own


class KeptSession(msgspec.Struct, frozen=True):
    """What a session is about; all else is in its journal."""

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
        """Keep a new session; it has said nothing yet."""
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
        """Every session, the newest first; one that cannot be read is passed over."""
        found: list[KeptSession] = []
        for name in sorted(self._names(), reverse=True):
            with suppress(OSError, ValueError):  # it may not even be text
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
        """The session whose id begins so, or ends so; without a name the newest."""
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
        """Whether a word can only mean a session here, and not a process."""
        return any(name == short(each) or each.id == name for each in self.all())

    def records(self, session: KeptSession, *, after: int = 0) -> list[tuple[int, AnyRecord]]:
        """All that is written down of it, each with its number; whoever writes meanwhile."""
        try:
            return list(read_session_journal(self._directory / session.id / _JOURNAL, after=after))
        except DiskMissing:
            return []

    def last(self, session: KeptSession) -> int:
        """The number of the last record that is written down of it."""
        try:
            return last_seq(SystemDisk(), self._directory / session.id / _JOURNAL)
        except DiskMissing:
            return 0

    def directory(self, session: KeptSession) -> Path:
        """Where all of a session is kept."""
        return self._directory / session.id

    def socket(self, session: KeptSession) -> Path:
        """Where its host is to be reached."""
        make_private(self._runtime)
        return self._runtime / f"{session.id[-12:]}.sock"


def short(session: KeptSession) -> str:
    """The end of an id, by which a person names a session."""
    return session.id[-NAME_CELLS:]


def runnable(session: KeptSession) -> KeptSession:
    """The session, if there is somebody to go on with it."""
    if session.runner not in RUNNERS:
        raise SessionReadOnly(session=short(session), tool=session.runner)
    return session
