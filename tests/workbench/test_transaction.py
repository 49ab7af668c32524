"""Real files are changed as a whole, byte for byte, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.workbench.core.publication import Outcome, Way
from tests.workbench.grounds import KEY, Ground, Thing, directory, file, link, plant

FINISHED = Outcome(Way.FINISHED, KEY)


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    made = Ground(tmp_path)
    yield made
    made.close()


BEFORE: dict[bytes, Thing] = {
    b"edited": file(b"1", note=b"old"),
    b"mode": file(b"2"),
    b"deleted": file(b"3"),
    b"relinked": link(b"edited"),
    b"link to file": link(b"mode"),
    b"file to link": file(b"4", 0o600),
    b"gone": directory(0o700),
    b"gone/deep": directory(0o755, note=b"x"),
    b"gone/deep/leaf": file(b"5"),
    b"closed and gone": directory(0o555),
    b"closed and gone/leaf": file(b"6"),
    b"file to directory": file(b"7"),
    b"directory to file": directory(),
    b"directory to file/leaf": file(b"8"),
    b"opened": directory(0o555, old=b"1"),
    b"untouched": file(b"9", 0o640, kept=b"\0\xff"),
}
AFTER: dict[bytes, Thing] = {
    b"edited": file(b"one", note=b"new"),
    b"mode": file(b"2", 0o755),
    b"created \xff\n": file(b"x" * 100_000, 0o4711),
    b"empty": file(b""),
    b"relinked": link(b"nowhere/\xff"),
    b"link to file": file(b"a link no more"),
    b"file to link": link(b"edited"),
    b"new": directory(0o2775, note=b"y"),
    b"new/deep": directory(),
    b"new/deep/leaf": file(b"leaf"),
    b"file to directory": directory(),
    b"file to directory/leaf": file(b"7"),
    b"directory to file": link(b"elsewhere"),
    b"opened": directory(0o755, new=b"2"),
    b"opened/leaf": file(b"1"),
    b"closed": directory(0o500),
    b"closed/leaf": file(b"in a closed one"),
    b"untouched": file(b"9", 0o640, kept=b"\0\xff"),
}


@pytest.mark.promise("W4", "W9")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (file(b"1"), file(b"2")),
        (file(b"1"), file(b"1", 0o755)),
        (file(b"1"), file(b"1", note=b"new")),
        (None, file(b"2")),
        (None, link(b"2")),
        (None, directory(0o711)),
        (None, directory(0o500, note=b"new")),
        (file(b"1"), None),
        (link(b"1"), None),
        (directory(0o500), None),
        (directory(0o755), directory(0o700)),
        (directory(0o500, a=b"1"), directory(0o755, b=b"2")),
        (file(b"1"), directory()),
        (directory(), link(b"1")),
        (link(b"1"), link(b"2")),
    ],
)
def test_one_thing_becomes_another(
    ground: Ground, before: Thing | None, after: Thing | None
) -> None:
    plant(ground.project, {b"x": before} if before else {})
    wanted = {b"x": after} if after else {}

    outcome = ground.carry_out(ground.changes(wanted))

    assert outcome == FINISHED
    assert ground.told == [FINISHED]
    assert ground.tree() == wanted
    assert ground.is_tidy()


@pytest.mark.promise("W4", "W9")
def test_a_whole_tree_becomes_another_and_back(ground: Ground) -> None:
    plant(ground.project, BEFORE)

    assert ground.carry_out(ground.changes(AFTER)) == FINISHED
    assert ground.tree() == AFTER
    assert ground.carry_out(ground.changes(BEFORE)) == FINISHED
    assert ground.tree() == BEFORE
    assert ground.is_tidy()
