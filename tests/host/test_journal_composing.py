"""A journal that is written at once, and only where there was none."""

from __future__ import annotations

from pathlib import Path

from holdfast.host.journal import JOURNAL, compose_book, read_book
from holdfast.host.model import Opened, Prompted

OPENED = Opened("s", "/p", "d", "rehearsal", 1)
PROMPTED = Prompted("c", 1, "Go", 2)


def test_what_is_composed_is_read_and_composed_once(tmp_path: Path) -> None:
    assert compose_book(tmp_path, (OPENED, PROMPTED), name="s")
    assert not compose_book(tmp_path, (OPENED,), name="s")

    assert list(read_book(tmp_path / JOURNAL)) == [(1, OPENED), (2, PROMPTED)]
