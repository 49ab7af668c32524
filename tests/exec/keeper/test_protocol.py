"""Messages travel whole, with their descriptors, whatever their size."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from holdfast.exec.keeper.discovery import name_of
from holdfast.exec.keeper.protocol import (
    PACKET_BYTES_MAX,
    KeeperName,
    MalformedPacket,
    Message,
    agreed,
    mapping,
    number,
    numbers,
    receive,
    send,
    text,
    texts,
)

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="memory files are missing")


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        theirs.setblocking(False)
        yield ours, theirs


@pytest.mark.parametrize("size", [0, PACKET_BYTES_MAX, 3 * 2**20], ids=["small", "edge", "big"])
def test_a_message_arrives_with_its_descriptors(
    ends: tuple[socket.socket, socket.socket], size: int
) -> None:
    message: Message = {"id": 1, "text": "é" * size}
    reader, writer = os.pipe()

    send(ends[0], message, [writer])
    received = receive(ends[1])

    assert received is not None
    assert received[0] == message
    (copy,) = received[1]
    assert not os.get_inheritable(copy)
    os.write(copy, b"through")
    assert os.read(reader, 9) == b"through"
    for descriptor in (reader, writer, copy):
        os.close(descriptor)


def test_nothing_yet_is_not_the_end(ends: tuple[socket.socket, socket.socket]) -> None:
    with pytest.raises(BlockingIOError):
        receive(ends[1])
    ends[0].close()

    assert receive(ends[1]) is None


@pytest.mark.parametrize("packet", [b"{", b"[]", b"\xff", b"big"])
def test_nonsense_is_malformed(ends: tuple[socket.socket, socket.socket], packet: bytes) -> None:
    ends[0].send(packet)

    with pytest.raises(MalformedPacket):
        receive(ends[1])


def test_a_member_of_another_kind_is_malformed() -> None:
    message: Message = {"text": 1, "number": True, "list": {}, "object": []}

    for look, name in ((text, "text"), (number, "number"), (texts, "list"), (numbers, "list")):
        with pytest.raises(MalformedPacket):
            look(message, name)
    with pytest.raises(MalformedPacket):
        mapping(message, "object")
    assert (texts({"l": ["a"]}, "l"), numbers({"l": [1]}, "l")) == (["a"], [1])


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ((1,), (1,), 1),
        ((1, 2), (1,), 1),
        ((1,), (1, 2), 1),
        ((2, 3), (1, 2, 3), 3),
        ((2,), (1,), None),
    ],
)
def test_the_newest_common_version_is_spoken(
    ours: tuple[int, ...], theirs: tuple[int, ...], expected: int | None
) -> None:
    assert agreed(ours, theirs) == expected


def test_a_keeper_is_known_by_a_name_that_no_other_gets() -> None:
    name = KeeperName.own()

    assert KeeperName.parse(str(name)) == name
    assert name == name_of(os.getpid())
    assert [KeeperName.parse(word) for word in ("", "1.2", "1.2.x")] == [None, None, None]
