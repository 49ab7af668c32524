"""A conversation and what is told of it: it counts at once, and is acted on once kept."""

from __future__ import annotations

import secrets

import anyio

from holdfast.agent.core.tree import Tree
from holdfast.agent.core.unicode import well_formed, writable
from holdfast.agent.hiding import Veil
from holdfast.agent.model import AnyMessage, AnyNews, Entered, Memo, Showing
from holdfast.agent.outbox import Outbox, Told


class Log:
    """One conversation during one turn; it has one writer at a time, who does not wait between."""

    def __init__(self, tree: Tree, outbox: Outbox, veil: Veil) -> None:
        self.tree, self.outbox = tree, outbox
        self._veil = veil

    def put(self, *told: Told) -> None:
        """Take up what is to be kept, and tell it with what is shown; no key is in either.

        Every text in it is valid Unicode from here on, whatever a tool returned.
        """
        clean = [self._veil.over(writable(each)) for each in told]
        for each in clean:
            if isinstance(each, Memo):
                self.tree.take(each)
        self.outbox.put(*clean)

    def show(self, piece: Showing) -> None:
        """Tell something that may be left out if nobody keeps up."""
        piece = Showing(piece.item, piece.sort, well_formed(piece.text))
        if (clean := self._veil.over_piece(piece)).text:
            self.outbox.show(clean)

    def enter(self, message: AnyMessage, *news: AnyNews, id: str | None = None) -> None:
        """Let a message follow the head, and be it."""
        self.put(Entered(id or new_id(), self.tree.head, message), *news)

    async def kept(self) -> None:
        """Wait until all that was put so far is kept; if it never will be, to be cancelled."""
        if not await self.outbox.kept():
            await anyio.sleep_forever()


def new_id() -> str:
    """A name that nothing in any conversation has."""
    return secrets.token_hex(8)
