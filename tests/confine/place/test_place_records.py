"""Who holds a place is known by what was written down, and by the mark of the holder itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.confine.model import Holder, PlaceSpec
from holdfast.confine.place.holder import MARK
from holdfast.confine.place.place import (
    forget,
    living_holder,
    mark_of,
    marked_holders,
    record,
    recorded_holder,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces")


def mark(directory: Path) -> str:
    return mark_of(PlaceSpec(directory=str(directory), project="/p\udcff", also=("/a",)), 12.5)


def test_a_living_holder_is_recorded_and_forgotten(tmp_path: Path) -> None:
    holder = record(mark(tmp_path), os.getpid())

    assert holder is not None
    assert (holder.pid, holder.project, holder.also, holder.since) == (
        os.getpid(),
        "/p\udcff",
        ("/a",),
        12.5,
    )
    assert Holder.of(holder.plain()) == holder
    assert living_holder(str(tmp_path)) == recorded_holder(str(tmp_path)) == holder
    forget(str(tmp_path))
    forget(str(tmp_path))
    assert recorded_holder(str(tmp_path)) is None
    assert list(tmp_path.iterdir()) == []


def test_one_who_is_gone_is_not_recorded(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, and its number is taken

        assert record(mark(tmp_path), child.pid) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"version": 1}', "\xff"])
def test_a_broken_record_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "holder.json").write_text(text, encoding="latin-1")

    assert recorded_holder(str(tmp_path)) is None


def test_who_only_copies_the_mark_is_not_taken_for_a_holder(tmp_path: Path) -> None:
    for said in (mark(tmp_path), "nonsense", "{}"):
        with subprocess.Popen(["cat"], env={MARK: said}, stdin=subprocess.PIPE) as forger:
            found = [each.pid for each in marked_holders()]
            assert forger.pid not in found
            assert living_holder(str(tmp_path)) is None
