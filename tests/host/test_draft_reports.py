"""Reports lie beside the journal, private, without secrets, and once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.host.draft import REPORTS, write_report
from holdfast.host.journal import JOURNAL, SessionJournal
from holdfast.host.model import EventRecorded, PromptQueued, SessionOpened, TurnClosed
from holdfast.runners.model import TextCompleted, TurnEnding
from holdfast.world import SystemDisk
from holdfast.world.failures import DiskOccupied
from holdfast.world.testing import run_inline

pytestmark = pytest.mark.anyio
SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"


async def test_a_report_is_a_page_and_a_record(tmp_path: Path) -> None:
    book = SessionJournal.open(SystemDisk(), tmp_path / JOURNAL, name="s", run=run_inline)
    closed = TurnClosed(1, TurnEnding.COMPLETED, 2)
    await book.write(
        SessionOpened("s", "/p", "d", "rehearsal", 0),
        PromptQueued("c", 1, f"Use OPENAI_API_KEY={SECRET}", 1),
        EventRecorded(1, TextCompleted("a", "Done.")),
    )

    page = write_report(tmp_path, JOURNAL, closed, None)
    assert write_report(tmp_path, JOURNAL, closed, None) == page
    book.close()

    assert page == tmp_path / "reports" / "turn-1.html"
    assert sorted(each.name for each in page.parent.iterdir()) == ["turn-1.html", "turn-1.json"]
    assert page.parent.stat().st_mode & 0o777 == 0o700
    record = json.loads(page.with_suffix(".json").read_text())
    assert (record["phase"], record["text"]) == ("completed", "Done.")
    for text in (page.read_text(), json.dumps(record)):
        assert "OPENAI_API_KEY" in text
        assert SECRET not in text


async def test_where_no_report_can_be_kept_is_named(tmp_path: Path) -> None:
    book = SessionJournal.open(SystemDisk(), tmp_path / JOURNAL, name="s", run=run_inline)
    await book.write(SessionOpened("s", "/p", "d", "rehearsal", 0))
    book.close()
    (tmp_path / REPORTS).write_text("in the way")

    with pytest.raises(DiskOccupied) as caught:
        write_report(tmp_path, JOURNAL, TurnClosed(1, TurnEnding.COMPLETED, 2), None)

    assert caught.value.path == str(tmp_path / REPORTS)
