"""What a conversation is held with: models, tools, rules and limits.

Take keys out of everything that a turn tells, before anybody keeps, shows or sends it.

Only keys that we know are hidden, by their value and however they are encoded: what merely looks
like a secret may be what the person wants worked on.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import anyio
import msgspec

from holdfast.agent.history.tree import ConversationTree
from holdfast.agent.loop import BudgetLimits
from holdfast.agent.model import (
    AnyConversationRecord,
    AnyMessage,
    AnyTurnEvent,
    ConversationRecord,
    MessageAppended,
    ModelChoice,
    ModelText,
    Tokens,
    ToolSpec,
    ToolUseEnded,
    TurnDelta,
    TurnDeltaKind,
    TurnOver,
    TurnWaiting,
    UsageRecorded,
)
from holdfast.agent.ports import Models, Tool
from holdfast.agent.text import well_formed, writable
from holdfast.telemetry import KnownRedactor, StreamRedactor

KnownKeys = Callable[[], tuple[str, ...]]
"""All keys that are known by now."""

_Told = TypeVar("_Told", bound=AnyConversationRecord | AnyTurnEvent)
_encode = msgspec.json.Encoder().encode


class KeyRedactor:
    """Hides the keys that are known, also those that were found after it was made."""

    def __init__(self, known: KnownKeys) -> None:
        self._known, self._hidden = known, known()
        self._redactor = KnownRedactor(self._hidden)
        self._pieces: dict[tuple[str, TurnDeltaKind], StreamRedactor] = {}

    def over(self, told: _Told) -> _Told:
        """The same without keys; it is the very same where there are none."""
        if isinstance(
            told, (ModelText, ToolUseEnded)
        ):  # whoever saw its pieces sees it as a whole now
            self._pieces = {at: each for at, each in self._pieces.items() if at[0] != told.item}
        elif isinstance(told, TurnOver):  # of what became void, nobody will say more
            self._pieces = {}
        if not self._any():
            return told
        data = _encode(told)
        clean = self._redactor.data(data)
        return told if clean is data else msgspec.json.decode(clean, type=type(told))

    def over_piece(self, piece: TurnDelta) -> TurnDelta:
        """The same without keys, also where one is cut into pieces: its beginning waits."""
        if not self._any():
            return piece
        stream = self._pieces.setdefault((piece.item, piece.sort), self._redactor.stream())
        return TurnDelta(piece.item, piece.sort, stream.feed(piece.text))

    def _any(self) -> bool:
        """Whether there is anything to hide, by what is known now."""
        known = self._known()
        if known != self._hidden:
            self._hidden, self._redactor, self._pieces = known, KnownRedactor(known), {}
        return bool(known)


TOOL_LONGEST: Final = 600.0  # seconds, not counting those that a person is waited for
SILENCE_LONGEST: Final = 120.0  # before it is said that a tool tells nothing


def _anybody(provider: str) -> None:
    del provider


def _none() -> tuple[str, ...]:
    return ()


async def nothing() -> None:
    """Nothing is to be ended."""


async def _never_changed() -> int:
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """Everything that turns are taken with.

    `agreed` raises what is missing before anything goes to a provider, each time anew. `clear`
    ends whatever tools have left running, when a turn is stopped. `known` are the keys that stay
    out of everything that a turn tells. `revision` is another number after files have changed.
    """

    models: Models
    choice: ModelChoice
    tools: Mapping[str, Tool]
    system: str = ""
    complaints: tuple[str, ...] = ()  # of what could not be used, for the person
    budget: BudgetLimits = field(default_factory=BudgetLimits)
    agreed: Callable[[str], None] = _anybody
    known: KnownKeys = _none
    clear: Callable[[], Awaitable[None]] = nothing
    revision: Callable[[], Awaitable[int]] = _never_changed
    tool_longest: float = TOOL_LONGEST
    silence_longest: float = SILENCE_LONGEST

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools, as a model is told of them."""
        return tuple(tool.spec for tool in self.tools.values())

    def paid(self, choice: ModelChoice, tokens: Tokens) -> UsageRecorded:
        """What is to be kept of what an answer cost."""
        cost = self.models.price(choice, tokens)
        return UsageRecorded(choice.provider, choice.model, tokens, cost)


def chosen(word: str, otherwise: ModelChoice, *, effort: str = "") -> ModelChoice:
    """The model that a word such as `provider/model` names; what it leaves out stays."""
    provider, mark, model = word.partition("/")
    if not mark:
        provider, model = otherwise.provider, word
    model = model or otherwise.model
    return ModelChoice(provider or otherwise.provider, model, effort or otherwise.effort)


# What a turn tells, for one reader who writes it down; who must know waits until it is.

TurnItem = AnyConversationRecord | AnyTurnEvent
"""What is kept of a turn, and what is shown of it, in the order in which it happened."""

_SHOWN_MAX: Final = 5_000  # pieces that nobody has looked at yet; more are not shown at all


class TurnQueue:
    """All that was put into it, in order; what was taken out counts as kept at the next look."""

    def __init__(self) -> None:
        self._items: list[TurnItem] = []
        self._put = 0
        self._kept = 0  # of those that were put
        self._taken = 0
        self._came, self._went = anyio.Event(), anyio.Event()
        self._is_closed = False

    def put(self, *told: TurnItem) -> None:
        """Tell something, in one batch; nobody may act on it before it is kept."""
        self._items.extend(told)
        self._put += len(told)
        self._came.set()

    def show(self, piece: TurnDelta | TurnWaiting) -> None:
        """Tell something that may be left out if nobody keeps up."""
        if len(self._items) < _SHOWN_MAX:
            self.put(piece)

    async def kept(self) -> bool:
        """Wait until all that was put so far is kept; False if nobody will ever keep it."""
        last = self._put
        while self._kept < last and not self._is_closed:
            await self._went.wait()
        return self._kept >= last

    async def take(self) -> Sequence[TurnItem]:
        """Wait for anything, and take all of it; what was taken before is kept by now."""
        self._kept = self._taken
        self._went.set()
        self._went = anyio.Event()
        while not self._items:
            self._came = anyio.Event()
            await self._came.wait()
        taken, self._items = self._items, []
        self._taken += len(taken)
        return taken

    def close(self, *, is_kept: bool) -> None:
        """Say that nobody reads on, and whether what was taken last is kept."""
        self._is_closed = True
        if is_kept:
            self._kept = self._taken
        self._went.set()


# A conversation and what is told of it: it counts at once, and is acted on once kept.


class ConversationLog:
    """One conversation during one turn; it has one writer at a time, who does not wait between."""

    def __init__(self, tree: ConversationTree, outbox: TurnQueue, veil: KeyRedactor) -> None:
        self.tree, self.outbox = tree, outbox
        self._veil = veil

    def put(self, *told: TurnItem) -> None:
        """Take up what is to be kept, and tell it with what is shown; no key is in either.

        Every text in it is valid Unicode from here on, whatever a tool returned.
        """
        clean = [self._veil.over(writable(each)) for each in told]
        for each in clean:
            if isinstance(each, ConversationRecord):
                self.tree.take(each)
        self.outbox.put(*clean)

    def show(self, piece: TurnDelta) -> None:
        """Tell something that may be left out if nobody keeps up."""
        piece = TurnDelta(piece.item, piece.sort, well_formed(piece.text))
        if (clean := self._veil.over_piece(piece)).text:
            self.outbox.show(clean)

    def enter(self, message: AnyMessage, *news: AnyTurnEvent, id: str | None = None) -> None:
        """Let a message follow the head, and be it."""
        self.put(MessageAppended(id or new_id(), self.tree.head, message), *news)

    async def kept(self) -> None:
        """Wait until all that was put so far is kept; if it never will be, to be cancelled."""
        if not await self.outbox.kept():
            await anyio.sleep_forever()


def new_id() -> str:
    """A name that nothing in any conversation has."""
    return secrets.token_hex(8)
