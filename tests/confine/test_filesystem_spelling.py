"""What was written down is read again, whatever bytes a path has."""

from __future__ import annotations

import os

import pytest

from holdfast.confine.filesystem import read_back, spelled

ODD = os.fsdecode(b'/odd \xff\n"\xe2\x82\xac')


def test_it_is_read_as_it_was_told() -> None:
    assert read_back(spelled({ODD: 1}), dict[str, int]) == {ODD: 1}
    assert read_back(spelled({ODD: [ODD]}), dict[str, list[str]]) == {ODD: [ODD]}


@pytest.mark.parametrize("data", [b"", b"{", b'{"\xff":1}', b'{"a":"1"}', b"[]"])
def test_what_is_spoiled_is_no_value(data: bytes) -> None:
    with pytest.raises(ValueError):
        read_back(data, dict[str, int])
