"""A draft has one lock, and whoever holds the descriptor has it."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.confine.place.place import LOCK_NAME, locked


def test_only_one_has_it_at_a_time(tmp_path: Path) -> None:
    with locked(str(tmp_path), is_new=True) as first:
        assert first is not None
        with locked(str(tmp_path)) as second:
            assert second is None
    with locked(str(tmp_path)) as third:
        assert third is not None


def test_who_inherited_the_descriptor_has_it_too(tmp_path: Path) -> None:
    with locked(str(tmp_path), is_new=True) as lock:
        assert lock is not None
        inherited = os.dup(lock)
    with locked(str(tmp_path)) as second:
        assert second is None
    os.close(inherited)
    with locked(str(tmp_path)) as third:
        assert third is not None


def test_a_directory_without_one_is_left_as_it_is(tmp_path: Path) -> None:
    with locked(str(tmp_path)) as lock:
        assert lock is None
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_was_removed_is_no_longer_the_lock(tmp_path: Path) -> None:
    with locked(str(tmp_path), is_new=True) as first:
        (tmp_path / LOCK_NAME).unlink()
        with locked(str(tmp_path), is_new=True) as second:
            assert first is not None
            assert second is not None
            assert not os.path.samestat(os.fstat(first), os.fstat(second))
