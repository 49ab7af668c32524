"""Trust is in what a file says, where it lies, and in nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.app.trust import Trust
from holdfast.world import SystemClock

FILE, OTHER = Path("/p/.holdfast.toml"), Path("/q/.holdfast.toml")


def test_what_is_trusted_is_the_content_at_its_place(tmp_path: Path) -> None:
    trust = Trust(tmp_path)
    assert not trust.holds(FILE, b"a")
    trust.give(FILE, b"a", SystemClock())

    assert Trust(tmp_path).holds(FILE, b"a")
    assert not trust.holds(FILE, b"b")
    assert not trust.holds(OTHER, b"a")
    trust.give(FILE, b"b", SystemClock())
    assert not trust.holds(FILE, b"a")


@pytest.mark.parametrize("damaged", [b"{", b'{"file":"\xff"}'])
def test_a_damaged_record_trusts_nothing(tmp_path: Path, damaged: bytes) -> None:
    trust = Trust(tmp_path)
    trust.give(FILE, b"a", SystemClock())
    (record,) = (tmp_path / "trust").iterdir()
    record.write_bytes(damaged)

    assert not trust.holds(FILE, b"a")
