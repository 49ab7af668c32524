"""Progress is shown when it takes long, and leaves nothing behind."""

from __future__ import annotations

import pytest

from holdfast.cli.project import ProgressLine, progress_text
from holdfast.workbench.model import WorkProgress

FILES = WorkProgress("files", 1000, 20_000)


def test_how_far_it_has_come_in_words() -> None:
    assert progress_text(FILES) == "files: 1,000 of 20,000"
    assert progress_text(WorkProgress("a\x1b[2J", 7)) == "a\\x1b[2J: 7"


@pytest.mark.promise("S4")
def test_what_takes_long_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    line = ProgressLine(is_wanted=True, delay=0.0)
    line(FILES)
    line(FILES)
    line.clear()

    assert capsys.readouterr().err == "(files: 1,000 of 20,000)\n"


@pytest.mark.parametrize(("is_wanted", "delay"), [(True, 3600.0), (False, 0.0)])
def test_what_is_soon_done_or_for_a_program_is_not(
    is_wanted: bool, delay: float, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ProgressLine(is_wanted=is_wanted, delay=delay)
    line(FILES)
    line.clear()

    assert capsys.readouterr().err == ""
