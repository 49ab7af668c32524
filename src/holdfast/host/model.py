"""What is written down of a conversation, and what can be asked of whoever holds it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from holdfast.runners.model import AnyEvent, Ending


class Record(msgspec.Struct, frozen=True, tag_field="type", omit_defaults=True):
    """One line of the journal of a session; what this version does not know of it is ignored."""


class Opened(Record, frozen=True, tag="opened"):
    """The conversation begins: about this project, in this draft, with this runner."""

    session: str
    project: str
    draft: str
    runner: str
    at_ms: int


class Begun(Record, frozen=True, tag="begun"):
    """A host has taken the conversation up; a later attempt says what became of the one before."""

    attempt: int
    at_ms: int
    reason: str = ""


class Led(Record, frozen=True, tag="led"):
    """Somebody with this lease leads the session from now on; older leases count no more."""

    generation: int


class Prompted(Record, frozen=True, tag="prompted"):
    """The person wants something; it is done in the turn of this number."""

    command: str
    turn: int
    text: str
    at_ms: int
    how: dict[str, str] = {}
    is_in_place: bool = False


class Steered(Record, frozen=True, tag="steered"):
    """The person has added something to the running turn, and the runner has taken it."""

    command: str
    turn: int
    text: str


class Who(StrEnum):
    """Who has answered a question."""

    PERSON = "person"
    UNATTENDED = "unattended"  # whoever led the session had nobody to ask
    NOBODY = "nobody"  # in time, or before the turn was over


class Answered(Record, frozen=True, tag="answered"):
    """A question of the agent has its answer."""

    question: str
    answer: str
    by: Who
    command: str = ""


class Aborted(Record, frozen=True, tag="aborted"):
    """The person wants the running turn to end."""

    command: str
    turn: int


class Withdrawn(Record, frozen=True, tag="withdrawn"):
    """Who wanted the turn of this number does not any more, before it has begun."""

    command: str
    turn: int


class TurnBegun(Record, frozen=True, tag="turn_begun"):
    """The runner is given the prompt of this turn now."""

    turn: int
    at_ms: int


class Happened(Record, frozen=True, tag="happened"):
    """Something that the runner told."""

    turn: int
    event: AnyEvent


class Repaired(Record, frozen=True, tag="repaired"):
    """These were begun and never told to have ended: they may or may not have completed."""

    turn: int
    items: tuple[str, ...]


class Revised(Record, frozen=True, tag="revised"):
    """The draft can be brought back to how this turn left it."""

    turn: int
    revision: int
    checkpoint: str


class Publishing(Record, frozen=True, tag="publishing"):
    """What this turn did goes into the project: once under this key, whatever dies meanwhile."""

    turn: int
    key: str


class Published(Record, frozen=True, tag="published"):
    """The project has what this turn did, so many paths; a checkpoint has it as it was before."""

    turn: int
    paths: int
    checkpoint: str | None = None


class TurnClosed(Record, frozen=True, tag="turn_closed"):
    """A turn is over; a report of it can be read."""

    turn: int
    ending: Ending
    at_ms: int
    failure: dict[str, object] | None = None
    report: str = ""


class Closed(Record, frozen=True, tag="closed"):
    """The person wants no more of this conversation; it can be read, and taken up again."""

    command: str
    at_ms: int


AnyRecord = (
    Opened
    | Begun
    | Led
    | Prompted
    | Steered
    | Answered
    | Aborted
    | Withdrawn
    | TurnBegun
    | Happened
    | Repaired
    | Revised
    | Publishing
    | Published
    | TurnClosed
    | Closed
)
"""Everything that a journal of a session can hold."""


class Prompt(msgspec.Struct, frozen=True, omit_defaults=True):
    """Do this; if a turn runs, after it. In place: the project gets what was done at the end.

    `how` is for the runner.
    """

    id: str
    text: str
    how: dict[str, str] = {}
    is_in_place: bool = False


class Steer(msgspec.Struct, frozen=True):
    """Mind this, too, in the running turn; if it takes nothing more, after it."""

    id: str
    text: str


class Answer(msgspec.Struct, frozen=True):
    """The answer to a question of the agent, and who gives it."""

    id: str
    question: str
    answer: str
    by: Who = Who.PERSON


class Abort(msgspec.Struct, frozen=True, omit_defaults=True):
    """End the running turn, and forget what waits for its end.

    If a turn is named, end that and no other; if it has not begun, forget it alone.
    """

    id: str
    turn: int = 0


class Close(msgspec.Struct, frozen=True):
    """End the running turn and the host; the draft and all that was said are kept."""

    id: str


Command = Prompt | Steer | Answer | Abort | Close
"""What a person, or a program for them, can ask; said twice under one id, it is done once."""
