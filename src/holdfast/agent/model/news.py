"""What the person is shown of a turn, beside what the model is told."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from holdfast.agent.model.asking import Choice
from holdfast.agent.model.deeds import Done
from holdfast.agent.model.talk import Tokens


class News(msgspec.Struct, frozen=True):
    """One thing that the person is shown of a turn, beside what the model is told."""


class Sort(StrEnum):
    """What a piece that is shown at once belongs to."""

    TEXT = "text"
    THINKING = "thinking"
    OUTPUT = "output"


class Showing(News, frozen=True):
    """A piece of what an item will be as a whole; it is not kept."""

    item: str
    sort: Sort
    text: str


class Telling(News, frozen=True):
    """The model has said this, or let see that it thinks this.

    `continues` says that it goes on with a text that was cut off.
    """

    item: str
    text: str
    is_thinking: bool = False
    continues: bool = False


class Using(News, frozen=True):
    """A tool is about to be used."""

    item: str
    tool: str
    title: str
    arguments: dict[str, object]


class UsedUp(News, frozen=True):
    """A tool has been used, with this result."""

    item: str
    done: Done


class Asking(News, frozen=True):
    """The turn waits for the person; the last choice is the refusal."""

    question: str
    title: str
    detail: str = ""
    choices: tuple[str, ...] = ()
    item: str = ""
    is_leave: bool = False


class Costing(News, frozen=True):
    """What the conversation has taken so far, and how full the model is."""

    choice: Choice
    tokens: Tokens
    context: int
    window: int | None
    cost_usd: float | None


class Noting(News, frozen=True):
    """Something that the person may want to know."""

    text: str
    failure: dict[str, object] | None = None


class Awaiting(News, frozen=True):
    """The turn waits for a model or a tool, for so many seconds by now; it is not kept."""

    what: str
    seconds: float


class Ending(StrEnum):
    """How a turn ended."""

    COMPLETED = "completed"
    ABORTED = "aborted"
    FAILED = "failed"
    INCOMPLETE = "incomplete"  # the answer was cut or empty, also when asked again
    REFUSED = "refused"  # by the provider


class Over(News, frozen=True):
    """The turn is over; always the last."""

    ending: Ending
    failure: dict[str, object] | None = None


AnyNews = Showing | Telling | Using | UsedUp | Asking | Costing | Noting | Awaiting | Over
"""Everything that the person is shown of a turn."""
