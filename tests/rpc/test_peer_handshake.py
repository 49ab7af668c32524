"""Versions meet, or say clearly that they do not."""

from __future__ import annotations

import pytest

from holdfast.rpc.failures import HandshakeMissing, HandshakeRepeated, VersionRefused
from holdfast.rpc.peer import HandshakeGate, Hello, agree


def speaks(oldest: int, newest: int, protocol: str = "host") -> Hello:
    return Hello(protocol, oldest, newest)


@pytest.mark.parametrize(
    ("ours", "theirs", "agreed"),
    [
        (speaks(1, 1), speaks(1, 1), 1),
        (speaks(1, 3), speaks(2, 5), 3),
        (speaks(2, 5), speaks(1, 3), 3),
        (speaks(1, 9), speaks(4, 4), 4),
    ],
)
def test_the_newest_common_version_is_chosen(ours: Hello, theirs: Hello, agreed: int) -> None:
    assert agree(ours, theirs) == agreed


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (speaks(1, 1), speaks(2, 2)),
        (speaks(3, 4), speaks(1, 2)),
        (speaks(1, 2), speaks(1, 2, "exec")),
    ],
)
def test_no_common_version_names_both_ranges(ours: Hello, theirs: Hello) -> None:
    with pytest.raises(VersionRefused) as raised:
        agree(ours, theirs)

    assert raised.value == VersionRefused(
        protocol=ours.protocol,
        ours_oldest=ours.oldest,
        ours_newest=ours.newest,
        theirs_protocol=theirs.protocol,
        theirs_oldest=theirs.oldest,
        theirs_newest=theirs.newest,
    )


def test_nothing_passes_the_gate_before_the_introduction() -> None:
    gate = HandshakeGate(method="hello")

    with pytest.raises(HandshakeMissing):
        gate.admit("work")
    gate.admit("hello")


@pytest.mark.promise("F6")
def test_the_introduction_passes_only_once() -> None:
    gate = HandshakeGate(method="hello")
    gate.open = True

    gate.admit("work")
    with pytest.raises(HandshakeRepeated):
        gate.admit("hello")
