"""How a host and whoever dials it speak: JSON-RPC over a Unix socket, a message a line."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from holdfast.host.model import AnyRecord
from holdfast.host.session import Phase
from holdfast.rpc import Hello
from holdfast.runners.model import Asked, Used

PROTOCOL: Final = "holdfast-host"
OLDEST: Final = 1
NEWEST: Final = 1

ATTACH: Final = "attach"
PROMPT: Final = "prompt"
STEER: Final = "steer"
ANSWER: Final = "answer"
ABORT: Final = "abort"
CLOSE: Final = "close"
STATE: Final = "state"
WATCH: Final = "watch"

RECORDS: Final = "records"  # news: what is kept, in order
DELTAS: Final = "deltas"  # news: what is only shown
TROUBLE: Final = "trouble"  # news: what keeps the session from being written down


class Role(StrEnum):
    """What a caller may do."""

    LEAD = "lead"
    WATCH = "watch"  # and ask nothing


class AttachParams(msgspec.Struct, frozen=True):
    """Who leads says with which lease; without one, with the oldest that still counts."""

    role: Role = Role.LEAD
    generation: int | None = None


class WatchParams(msgspec.Struct, frozen=True):
    """Tell all that comes after this record, from now on, under this number.

    Who watches again on the same connection is told no more under the number before.
    """

    after: int = 0
    number: int = 0


class Told(msgspec.Struct, frozen=True):
    """Records as they stand in the journal, each with its number there."""

    watch: int
    records: tuple[tuple[int, AnyRecord], ...]


class NoParams(msgspec.Struct, frozen=True):
    """Nothing more need be said."""


class Done(msgspec.Struct, frozen=True):
    """It is written down, up to this record."""

    seq: int


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Where a session stands."""

    session: str
    project: str
    draft: str
    runner: str
    phase: Phase
    attempt: int
    turn: int
    waiting: int
    seq: int
    questions: tuple[Asked, ...] = ()
    used: Used | None = None
    failure: dict[str, object] | None = None


class Trouble(msgspec.Struct, frozen=True):
    """What keeps the session from being written down, as in the contract; None: nothing now."""

    failure: dict[str, object] | None


class Pulse(msgspec.Struct, frozen=True):
    """What a ping is answered with: for how long each loop has made no progress, in seconds.

    A turn that waits makes progress: `awaits` names the model or tool, `awaits_seconds` for how
    long it has been silent.
    """

    turn: float
    journal: float
    awaits: str = ""
    awaits_seconds: float = 0.0


def hello(name: str, version: str) -> Hello:
    """How either side introduces itself."""
    return Hello(PROTOCOL, OLDEST, NEWEST, name, version)
