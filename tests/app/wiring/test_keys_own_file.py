"""What a person has written is read, or said to be unreadable."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.app.failures import ConfigUnreadable
from holdfast.app.wiring.keys import own_text
from holdfast.failures import Failure


def test_a_file_is_read_and_none_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("a = 1\n")

    assert own_text(tmp_path / "there") == "a = 1\n"
    assert own_text(tmp_path / "missing") == ""
    with pytest.raises(Failure):
        own_text(tmp_path)


def test_what_is_no_text_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(b"a = '\xe9'\n")

    with pytest.raises(ConfigUnreadable) as caught:
        own_text(tmp_path / "there")
    assert caught.value.details == {
        "file": str(tmp_path / "there"),
        "problem": "it is not UTF-8 text",
    }
