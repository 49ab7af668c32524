"""Host protocol: JSON-RPC over a Unix socket, one message a line.

    client                                   host
      hello ──────────────────────────────▶          versions, see `hello`
      attach {role, generation} ──────────▶          ◀── SessionStatus
      watch {after, number} ──────────────▶          ◀── Acknowledgement
                         ◀── records {watch, records}    notifications, from the cursor on
                         ◀── deltas, trouble             not recorded, may be dropped
      prompt, steer, answer, abort, close ▶          ◀── Acknowledgement, when durable
      state, ping ────────────────────────▶          ◀── SessionStatus, LoopHealth

Commands have ids, so that a client may repeat one after a lost connection.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from holdfast.host.model import AnyRecord
from holdfast.host.session import SessionPhase
from holdfast.rpc import Hello
from holdfast.runners.model import QuestionAsked, UsageUpdated

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

RECORDS: Final = "records"  # notification: durable records, in order
DELTAS: Final = "deltas"  # notification: streaming output
TROUBLE: Final = "trouble"  # notification: why the journal cannot be written


class ClientRole(StrEnum):
    """What a client may do."""

    LEAD = "lead"
    WATCH = "watch"  # read only


class AttachParams(msgspec.Struct, frozen=True):
    """`generation` is the client's lease; None: the current one."""

    role: ClientRole = ClientRole.LEAD
    generation: int | None = None


class WatchParams(msgspec.Struct, frozen=True):
    """Subscribe to records after a sequence number.

    A further subscription on the same connection replaces this one; `number` tells their
    notifications apart.
    """

    after: int = 0
    number: int = 0


class RecordBatch(msgspec.Struct, frozen=True):
    """Records with their sequence numbers."""

    watch: int
    records: tuple[tuple[int, AnyRecord], ...]


class EmptyParams(msgspec.Struct, frozen=True):
    """No parameters."""


class Acknowledgement(msgspec.Struct, frozen=True):
    """The command is durable up to this sequence number."""

    seq: int


class SessionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Status of a session."""

    session: str
    project: str
    draft: str
    runner: str
    phase: SessionPhase
    attempt: int
    turn: int
    waiting: int
    seq: int
    questions: tuple[QuestionAsked, ...] = ()
    used: UsageUpdated | None = None
    failure: dict[str, object] | None = None


class JournalTrouble(msgspec.Struct, frozen=True):
    """The failure that prevents writing the journal; None when it is over."""

    failure: dict[str, object] | None


class LoopHealth(msgspec.Struct, frozen=True):
    """Response to a ping: seconds for which each loop has made no progress.

    `awaits` names the model or tool that the turn waits for, `awaits_seconds` for how long.
    """

    turn: float
    journal: float
    awaits: str = ""
    awaits_seconds: float = 0.0


def hello(name: str, version: str) -> Hello:
    """Return the handshake of either side."""
    return Hello(PROTOCOL, OLDEST, NEWEST, name, version)
