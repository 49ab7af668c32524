"""Which checkpoints there are, and which of those that stand in a segment count no more."""

from __future__ import annotations

from collections.abc import Collection

from holdfast.world import Transaction


class Roster:
    """All checkpoints, within one transaction of the index."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def add(self, id: str, name: bytes) -> None:
        """Take note of which object a checkpoint is."""
        self._transaction.execute("INSERT OR REPLACE INTO checkpoints VALUES (?, ?)", (id, name))

    def find(self, id: str) -> bytes | None:
        """Which object a checkpoint is; None if there is none of this id."""
        row = self._transaction.execute(
            "SELECT name FROM checkpoints WHERE id = ?", (id,)
        ).fetchone()
        return None if row is None else row[0]

    def all(self) -> list[tuple[str, bytes]]:
        """The id and the object of every checkpoint, the newest first."""
        return self.newest(-1)

    def newest(self, most: int) -> list[tuple[str, bytes]]:
        """The same of the newest ones; costs no more than so many."""
        return self._transaction.execute(
            "SELECT id, name FROM checkpoints ORDER BY id DESC LIMIT ?", (most,)
        ).fetchall()

    def count(self) -> int:
        """How many checkpoints there are."""
        count: int = self._transaction.execute("SELECT count(*) FROM checkpoints").fetchone()[0]
        return count

    def clear(self) -> None:
        """Forget which checkpoints there are, for whoever finds out anew."""
        self._transaction.execute("DELETE FROM checkpoints")

    def prune(self, names: Collection[bytes]) -> None:
        """Let these checkpoints count no more, even if they are found in a segment."""
        rows = [(name,) for name in names]
        self._transaction.execute_many("DELETE FROM checkpoints WHERE name = ?", rows)
        self._transaction.execute_many("INSERT OR IGNORE INTO pruned VALUES (?)", rows)

    def pruned(self) -> list[bytes]:
        """The checkpoints that count no more and still stand in a segment, sorted."""
        self._transaction.execute("DELETE FROM pruned WHERE name NOT IN (SELECT name FROM objects)")
        rows = self._transaction.execute("SELECT name FROM pruned ORDER BY name")
        return [row[0] for row in rows]
