"""A journal that is written at once, and only where there was none."""

from __future__ import annotations

from pathlib import Path

from holdfast.host.journal import JOURNAL, compose_journal, read_session_journal
from holdfast.host.model import PromptQueued, SessionOpened

OPENED = SessionOpened("s", "/p", "d", "rehearsal", 1)
PROMPTED = PromptQueued("c", 1, "Go", 2)


def test_what_is_composed_is_read_and_composed_once(tmp_path: Path) -> None:
    assert compose_journal(tmp_path, (OPENED, PROMPTED), name="s")
    assert not compose_journal(tmp_path, (OPENED,), name="s")

    assert list(read_session_journal(tmp_path / JOURNAL)) == [(1, OPENED), (2, PROMPTED)]
