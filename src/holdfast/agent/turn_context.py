"""Configuration, log and event queue of a turn, and redaction of provider keys.

Everything a turn emits goes through `ConversationLog`: it redacts keys, applies records to the
conversation tree, and puts records and events on a `TurnQueue`. The reader of the queue (the host)
writes records to the journal. A turn that must not act before its records are durable awaits
`kept()`, which returns when the reader asks for the next batch.

Redaction covers keys that we know, by value and in common encodings. Text that merely looks like a
secret is not touched: it may be what the person is working on.
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
"""Returns all keys that are known so far."""

_Told = TypeVar("_Told", bound=AnyConversationRecord | AnyTurnEvent)
_encode = msgspec.json.Encoder().encode


class KeyRedactor:
    """Removes known keys from records and events, including keys found after its creation."""

    def __init__(self, known: KnownKeys) -> None:
        self._known, self._hidden = known, known()
        self._redactor = KnownRedactor(self._hidden)
        self._pieces: dict[tuple[str, TurnDeltaKind], StreamRedactor] = {}

    def over(self, told: _Told) -> _Told:
        """Return the item without keys; the identical object if there were none."""
        if isinstance(told, (ModelText, ToolUseEnded)):
            # The complete item replaces its deltas, so their withheld key prefixes can be dropped.
            self._pieces = {at: each for at, each in self._pieces.items() if at[0] != told.item}
        elif isinstance(told, TurnOver):
            # Discarded answers never get a complete item that would drop their prefixes.
            self._pieces = {}
        if not self._any():
            return told
        data = _encode(told)
        clean = self._redactor.data(data)
        return told if clean is data else msgspec.json.decode(clean, type=type(told))

    def over_piece(self, piece: TurnDelta) -> TurnDelta:
        """Redact a delta, also where a key spans several deltas: its prefix is withheld."""
        if not self._any():
            return piece
        stream = self._pieces.setdefault((piece.item, piece.sort), self._redactor.stream())
        return TurnDelta(piece.item, piece.sort, stream.feed(piece.text))

    def _any(self) -> bool:
        """Whether any key is known now."""
        known = self._known()
        if known != self._hidden:
            self._hidden, self._redactor, self._pieces = known, KnownRedactor(known), {}
        return bool(known)


# Seconds for one tool call. Time that a question to the person is open does not count.
TOOL_LONGEST: Final = 600.0
# Seconds without output before the person is notified that a tool is silent.
SILENCE_LONGEST: Final = 120.0


def _anybody(provider: str) -> None:
    del provider


def _none() -> tuple[str, ...]:
    return ()


async def nothing() -> None:
    """Do nothing: the default for `clear`."""


async def _never_changed() -> int:
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """What a conversation runs with: models, tools, limits and callbacks.

    `agreed` raises if the person has not consented to send data to a provider; it is called before
    every request. `clear` ends processes that tools left running, when a turn is stopped. `known`
    returns the keys to redact. `revision` changes whenever files of the draft have changed.
    """

    models: Models
    choice: ModelChoice
    tools: Mapping[str, Tool]
    system: str = ""
    complaints: tuple[str, ...] = ()  # warnings for the person: what cannot be used
    budget: BudgetLimits = field(default_factory=BudgetLimits)
    agreed: Callable[[str], None] = _anybody
    known: KnownKeys = _none
    clear: Callable[[], Awaitable[None]] = nothing
    revision: Callable[[], Awaitable[int]] = _never_changed
    tool_longest: float = TOOL_LONGEST
    silence_longest: float = SILENCE_LONGEST

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as they are described to the model."""
        return tuple(tool.spec for tool in self.tools.values())

    def paid(self, choice: ModelChoice, tokens: Tokens) -> UsageRecorded:
        """Return the usage record of an answer, with its price."""
        cost = self.models.price(choice, tokens)
        return UsageRecorded(choice.provider, choice.model, tokens, cost)


def chosen(word: str, otherwise: ModelChoice, *, effort: str = "") -> ModelChoice:
    """Parse `provider/model`; missing parts are taken from `otherwise`."""
    provider, mark, model = word.partition("/")
    if not mark:
        provider, model = otherwise.provider, word
    model = model or otherwise.model
    return ModelChoice(provider or otherwise.provider, model, effort or otherwise.effort)


TurnItem = AnyConversationRecord | AnyTurnEvent
"""A record or an event of a turn, in the order in which it was emitted."""

# Queue bound for deltas. A slow reader loses deltas, never records: those are bounded by the turn
# itself, which waits for them to be written.
_SHOWN_MAX: Final = 5_000


class TurnQueue:
    """Single-reader queue of a turn that knows which items the reader has recorded.

        put ──▶ items ──take()──▶ taken ──next take()──▶ kept

    The reader records what `take` returned before it calls `take` again.
    """

    def __init__(self) -> None:
        self._items: list[TurnItem] = []
        self._put = 0
        self._kept = 0  # count of items, as `_put` and `_taken`
        self._taken = 0
        self._came, self._went = anyio.Event(), anyio.Event()
        self._is_closed = False

    def put(self, *told: TurnItem) -> None:
        """Queue items as one batch."""
        self._items.extend(told)
        self._put += len(told)
        self._came.set()

    def show(self, piece: TurnDelta | TurnWaiting) -> None:
        """Queue a delta, or drop it if the reader is too far behind."""
        if len(self._items) < _SHOWN_MAX:
            self.put(piece)

    async def kept(self) -> bool:
        """Wait until everything queued so far is recorded; False if the reader has gone."""
        last = self._put
        while self._kept < last and not self._is_closed:
            await self._went.wait()
        return self._kept >= last

    async def take(self) -> Sequence[TurnItem]:
        """Wait for items, and return all of them; confirms that the previous batch is recorded."""
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
        """End the queue; `is_kept` says whether the last batch was recorded."""
        self._is_closed = True
        if is_kept:
            self._kept = self._taken
        self._went.set()


class ConversationLog:
    """Emits the records and events of one turn; used by one task at a time."""

    def __init__(self, tree: ConversationTree, queue: TurnQueue, redactor: KeyRedactor) -> None:
        self.tree, self.queue = tree, queue
        self._redactor = redactor

    def put(self, *told: TurnItem) -> None:
        """Redact and normalize items, apply records to the tree, and queue all of it.

        Texts are valid Unicode afterwards, whatever a tool returned.
        """
        clean = [self._redactor.over(writable(each)) for each in told]
        for each in clean:
            if isinstance(each, ConversationRecord):
                self.tree.take(each)
        self.queue.put(*clean)

    def show(self, piece: TurnDelta) -> None:
        """Queue a delta, or drop it if the reader is too far behind."""
        piece = TurnDelta(piece.item, piece.sort, well_formed(piece.text))
        if (clean := self._redactor.over_piece(piece)).text:
            self.queue.show(clean)

    def enter(self, message: AnyMessage, *news: AnyTurnEvent, id: str | None = None) -> None:
        """Append a message to the head, and make it the head."""
        self.put(MessageAppended(id or new_id(), self.tree.head, message), *news)

    async def kept(self) -> None:
        """Wait until everything emitted so far is recorded; forever if the reader has gone."""
        if not await self.queue.kept():
            # The reader has gone, so the turn is about to be cancelled. Returning would let it act
            # on records that are not durable.
            await anyio.sleep_forever()


def new_id() -> str:
    """Return a random id, unique across conversations."""
    return secrets.token_hex(8)
