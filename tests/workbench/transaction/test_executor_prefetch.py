"""Contents come as they were kept, in any order, and many at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.workbench.failures import ObjectMissing
from holdfast.workbench.store.store import Store
from holdfast.workbench.transaction.executor import ContentPrefetch

LARGE = bytes(range(256)) * 40_000
DATA = [b"", b"1", b"22", LARGE, b"4", b"x" * (5 * 2**20), b"6"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "state") as open_directory:
        yield open_directory


@pytest.mark.parametrize("order", [range(7), range(6, -1, -1), [2, 2, 0, 6, 3, 3, 1, 5, 2]])
def test_every_content_comes_as_it_was_kept(store: Store, order: list[int]) -> None:
    names = [store.put_content([data])[0] for data in DATA]
    supply = ContentPrefetch(store, [*names[:3], *names])

    assert [b"".join(supply.pieces(names[each])) for each in order] == [DATA[at] for at in order]


def test_what_was_not_announced_comes_too(store: Store) -> None:
    name, _ = store.put_content([b"1"])

    assert b"".join(ContentPrefetch(store, ()).pieces(name)) == b"1"


def test_what_is_not_there_is_missed(store: Store) -> None:
    with pytest.raises(ObjectMissing):
        b"".join(ContentPrefetch(store, [bytes(32)]).pieces(bytes(32)))
