"""Take keys out of everything that a turn tells, before anybody keeps, shows or sends it.

Only keys that we know are hidden, by their value and however they are encoded: what merely looks
like a secret may be what the person wants worked on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from holdfast.agent.model import AnyMemo, AnyNews, Over, Showing, Sort, Telling, UsedUp
from holdfast.telemetry import KnownRedactor, StreamRedactor

Known = Callable[[], tuple[str, ...]]
"""All keys that are known by now."""

_Told = TypeVar("_Told", bound=AnyMemo | AnyNews)
_encode = msgspec.json.Encoder().encode


class Veil:
    """Hides the keys that are known, also those that were found after it was made."""

    def __init__(self, known: Known) -> None:
        self._known, self._hidden = known, known()
        self._redactor = KnownRedactor(self._hidden)
        self._pieces: dict[tuple[str, Sort], StreamRedactor] = {}

    def over(self, told: _Told) -> _Told:
        """The same without keys; it is the very same where there are none."""
        if isinstance(told, (Telling, UsedUp)):  # whoever saw its pieces sees it as a whole now
            self._pieces = {at: each for at, each in self._pieces.items() if at[0] != told.item}
        elif isinstance(told, Over):  # of what became void, nobody will say more
            self._pieces = {}
        if not self._any():
            return told
        data = _encode(told)
        clean = self._redactor.data(data)
        return told if clean is data else msgspec.json.decode(clean, type=type(told))

    def over_piece(self, piece: Showing) -> Showing:
        """The same without keys, also where one is cut into pieces: its beginning waits."""
        if not self._any():
            return piece
        stream = self._pieces.setdefault((piece.item, piece.sort), self._redactor.stream())
        return Showing(piece.item, piece.sort, stream.feed(piece.text))

    def _any(self) -> bool:
        """Whether there is anything to hide, by what is known now."""
        known = self._known()
        if known != self._hidden:
            self._hidden, self._redactor, self._pieces = known, KnownRedactor(known), {}
        return bool(known)
