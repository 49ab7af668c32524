"""What was seen of each directory when it was last looked at.

Of every origin there are sights of its own. Without them the next look merely reads more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from holdfast.workbench.core.tree import Totals
from holdfast.world import Transaction


class Known(NamedTuple):
    """What a directory was when it was last looked at."""

    tree: bytes
    totals: Totals
    sight: bytes
    is_racy: bool


# Where the file is spoiled, a value can come back as one of another sort: bytes stay bytes here.
_TREE, _SIGHT = "ifnull(CAST(tree AS BLOB), x'')", "ifnull(CAST(sight AS BLOB), x'')"
_KNOWN = f"{_TREE}, files, size, uncovered, {_SIGHT}, is_racy"


def _known(  # the columns, as they come
    tree: bytes, files: int, size: int, uncovered: int, sight: bytes, is_racy: int
) -> Known:
    return Known(tree, Totals(files, size, uncovered), sight, bool(is_racy))


_LAYOUT = "layout"


class Sights:
    """What is known of directories, within one transaction of the index."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def known(self, origin: str, directory: bytes) -> Known | None:
        """What a directory of an origin was; None if it was never looked at."""
        row = self._transaction.execute(
            f"SELECT {_KNOWN} FROM sights WHERE origin = ? AND directory = ?", (origin, directory)
        ).fetchone()
        return None if row is None else _known(*row)

    def all(self, origin: str) -> dict[bytes, Known]:
        """What every directory of an origin was: cheaper than to ask for each of them."""
        rows = self._transaction.execute(
            f"SELECT directory, {_KNOWN} FROM sights WHERE origin = ?", (origin,)
        )
        return {directory: _known(*row) for directory, *row in rows}

    def sure(self, origin: str) -> list[tuple[bytes, bytes]]:
        """Every directory of an origin of which all is known for sure, with its sight."""
        return self._transaction.execute(
            f"SELECT directory, {_SIGHT} FROM sights WHERE origin = ? AND NOT is_racy", (origin,)
        ).fetchall()

    def note(self, origin: str, looked: Iterable[tuple[bytes, Known]]) -> None:
        """Say what directories of an origin are."""
        self._transaction.execute_many(
            "INSERT OR REPLACE INTO sights VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (origin, directory, known.tree, *known.totals, known.sight, known.is_racy)
                for directory, known in looked
            ),
        )

    def layout(self, origin: str) -> bytes:
        """A token that changes when a directory became another one; empty if nothing is known."""
        known = self.known(f"{_LAYOUT} {origin}", b"")
        return b"" if known is None else known.sight

    def note_layout(self, origin: str, token: bytes) -> None:
        """Replace the token of an origin."""
        self.note(f"{_LAYOUT} {origin}", [(b"", Known(b"", Totals(0, 0, 0), token, is_racy=False))])

    def forget(self, origin: str, directory: bytes) -> None:
        """Drop what is known of a directory of an origin and of all below it."""
        self._transaction.execute(
            "DELETE FROM sights WHERE origin = ? AND"
            " (directory = ? OR (directory >= ? AND directory < ?))",
            (origin, directory, directory + b"/", directory + b"0"),  # 0 is what follows a slash
        )

    def racy(self, origin: str) -> list[bytes]:
        """The directories of an origin that must be looked at again in any case."""
        rows = self._transaction.execute(
            "SELECT directory FROM sights WHERE origin = ? AND is_racy", (origin,)
        )
        return [row[0] for row in rows]

    def forget_all(self) -> None:
        """Drop every sight, because it may rest on something that is lost."""
        self._transaction.execute("DELETE FROM sights")

    def forget_others(self, trees: Collection[bytes]) -> None:
        """Drop every sight of a directory that is none of these."""
        seen = self._transaction.execute("SELECT origin, directory, tree FROM sights").fetchall()
        self._transaction.execute_many(
            "DELETE FROM sights WHERE origin = ? AND directory = ?",
            ((origin, directory) for origin, directory, tree in seen if tree not in trees),
        )
