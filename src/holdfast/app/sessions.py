"""The sessions that are kept here: a directory for each, and where its host is to be reached."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from holdfast.app.failures import SessionAmbiguous, SessionMissing
from holdfast.app.settings import Settings
from holdfast.world import (
    IdMaker,
    SystemChance,
    SystemClock,
    SystemDisk,
    make_private,
    replace_file,
)

PREFIX: Final = "session"
_ABOUT: Final = "session.json"


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
            id=str(IdMaker(self._clock, SystemChance()).make(PREFIX)),
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
        with suppress(FileNotFoundError):
            for name in sorted(os.listdir(self._directory), reverse=True):
                with suppress(OSError, msgspec.DecodeError):
                    data = (self._directory / name / _ABOUT).read_bytes()
                    found.append(msgspec.json.decode(data, type=KeptSession))
        return found

    def find(self, name: str | None) -> KeptSession:
        """The session whose id begins so, or ends so; without a name the newest."""
        every = self.all()
        matching = [each for each in every if name is None or name in {each.id, each.id[-8:]}]
        matching = matching or [each for each in every if each.id.startswith(name or "")]
        if not matching:
            raise SessionMissing(session=name or "")
        if name is not None and len(matching) > 1:
            raise SessionAmbiguous(session=name, count=len(matching))
        return matching[0]

    def directory(self, session: KeptSession) -> Path:
        """Where all of a session is kept."""
        return self._directory / session.id

    def socket(self, session: KeptSession) -> Path:
        """Where its host is to be reached."""
        make_private(self._runtime)
        return self._runtime / f"{session.id[-12:]}.sock"
