"""A draft that somebody is about to use is known to be used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.workbench.handle import draft_in_use, is_draft_in_use
from holdfast.world.failures import DiskMissing


def test_a_draft_is_visited_until_the_last_visitor_goes(tmp_path: Path) -> None:
    assert not is_draft_in_use(tmp_path)
    with draft_in_use(tmp_path):
        with draft_in_use(tmp_path):
            assert is_draft_in_use(tmp_path)
        assert is_draft_in_use(tmp_path)
    assert not is_draft_in_use(tmp_path)


def test_a_visitor_that_dies_is_gone(tmp_path: Path) -> None:
    child = os.fork()
    if not child:
        with draft_in_use(tmp_path):
            os._exit(0)
    os.waitpid(child, 0)
    assert not is_draft_in_use(tmp_path)


def test_no_draft_can_be_visited_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DiskMissing), draft_in_use(tmp_path / "gone"):
        pass
