"""Two versions of a host and its callers find out whether they understand one another."""

from __future__ import annotations

import pytest

from holdfast.host.protocol import NEWEST, OLDEST, PROTOCOL, hello
from holdfast.rpc import Hello
from holdfast.rpc.failures import VersionRefused
from holdfast.rpc.peer import agree


def test_the_same_version_is_understood() -> None:
    assert agree(hello("a", "1"), hello("b", "2")) == NEWEST


@pytest.mark.parametrize(
    "other",
    [Hello("other", OLDEST, NEWEST), Hello(PROTOCOL, NEWEST + 1, NEWEST + 2)],
)
def test_another_one_is_refused_by_name(other: Hello) -> None:
    with pytest.raises(VersionRefused):
        agree(hello("a", "1"), other)
