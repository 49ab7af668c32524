"""Fetch the contents that a transaction needs from the store, many small ones at once.

To ask the store once costs more than to read a small file. So whoever asks for one content gets
those that were announced after it ahead of time, up to a limit; a large one comes in pieces.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from holdfast.workbench.core.record import ObjectSort
from holdfast.workbench.objects import Objects
from holdfast.workbench.store import Store

_AHEAD_BYTES: Final = 4 * 2**20
_AHEAD_COUNT: Final = 1000


class Supply:
    """Gives contents out; fastest in the order in which they are announced."""

    def __init__(self, store: Store, announced: Iterable[bytes]) -> None:
        self._store = store
        self._announced = list(dict.fromkeys(announced))
        self._place = {name: at for at, name in enumerate(self._announced)}
        self._ahead: dict[bytes, bytes] = {}

    def pieces(self, name: bytes) -> Iterable[bytes]:
        """A content, checked, in one piece or several; raise ObjectMissing or ObjectDamaged."""
        if name in self._place and name not in self._ahead:
            self._ahead = self._store.vault.read(lambda objects: self._fetched(objects, name))
        found = self._ahead.get(name)
        return self._store.content(name) if found is None else (found,)

    def _fetched(self, objects: Objects, first: bytes) -> dict[bytes, bytes]:
        fetched: dict[bytes, bytes] = {}
        room = _AHEAD_BYTES
        start = self._place[first]
        for name, sort, data in objects.each(self._announced[start : start + _AHEAD_COUNT]):
            if sort is ObjectSort.PIECES:
                break
            fetched[name] = data
            room -= len(data)
            if room <= 0:
                break
        return fetched
