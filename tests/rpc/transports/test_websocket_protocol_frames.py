"""Messages come out whole and in order, however they were fragmented; broken rules are named."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.rpc.transports.websocket_protocol import (
    BINARY,
    CLOSE,
    CONTINUATION,
    NOT_UTF8,
    PING,
    TEXT,
    MessageAssembler,
    ProtocolViolation,
    close_payload,
    control_frame,
    text_parts,
)

Frame = tuple[int, bytes, bool]

RESERVED = ProtocolViolation(1002, "a reserved bit is set")
NOTHING_BEGAN = ProtocolViolation(1002, "there is no message to continue")
UNFINISHED = ProtocolViolation(1002, "the last message is not finished")
LARGE = ProtocolViolation(1009, "a message has more than 10 bytes")


def fed(assembly: MessageAssembler, frames: list[Frame]) -> list[bytes]:
    taken = [
        assembly.take(opcode, payload, is_last=is_last, reserved=False)
        for opcode, payload, is_last in frames
    ]
    return [message for message in taken if message is not None]


@pytest.mark.parametrize(
    ("frames", "messages", "violation"),
    [
        ([(TEXT, b"{}", True), (BINARY, b"\xff", True)], [b"{}", b"\xff"], None),
        ([(TEXT, b"", True)], [b""], None),
        ([(TEXT, b"a", False), (CONTINUATION, b"b", True)], [b"ab"], None),
        ([(TEXT, b"a", False), (CONTINUATION, b"", False)], [], None),
        ([(TEXT, b"\xc3", False), (CONTINUATION, b"\xa4", True)], ["ä".encode()], None),
        ([(BINARY, b"\xc3", False), (CONTINUATION, b"x", True)], [b"\xc3x"], None),
        ([(TEXT, b"ok", True), (CONTINUATION, b"x", True)], [b"ok"], NOTHING_BEGAN),
        ([(TEXT, b"a", False), (TEXT, b"b", True)], [], UNFINISHED),
        ([(TEXT, b"a", False), (BINARY, b"b", True)], [], UNFINISHED),
        ([(TEXT, b"\xff", True)], [], NOT_UTF8),
        ([(TEXT, b"\xed\xa0\x80", True)], [], NOT_UTF8),
        ([(TEXT, b"\xc3", True)], [], NOT_UTF8),
        ([(TEXT, b"\xff", False)], [], NOT_UTF8),
        ([(TEXT, b"\xc3", False), (CONTINUATION, b"x", False)], [], NOT_UTF8),
        ([(TEXT, b"0123456789", True)], [b"0123456789"], None),
        ([(TEXT, b"01234567890", True)], [], LARGE),
        ([(TEXT, b"01234", False), (CONTINUATION, b"567890", False)], [], LARGE),
        ([(TEXT, b"\xff", True), (TEXT, b"later", True)], [], NOT_UTF8),
    ],
)
def test_frames_make_messages(
    frames: list[Frame], messages: list[bytes], violation: ProtocolViolation | None
) -> None:
    assembly = MessageAssembler(message_bytes_max=10)
    assert (fed(assembly, frames), assembly.violation) == (messages, violation)


@pytest.mark.parametrize("opcode", [CONTINUATION, TEXT, BINARY])
def test_reserved_bits_are_refused(opcode: int) -> None:
    assembly = MessageAssembler(message_bytes_max=10)
    assert assembly.take(opcode, b"{}", is_last=True, reserved=True) is None
    assert assembly.violation == RESERVED


@given(st.lists(st.lists(st.text(max_size=5).map(str.encode), min_size=1, max_size=4), max_size=6))
def test_any_fragmentation_of_any_text_is_undone(messages: list[list[bytes]]) -> None:
    frames = [
        (CONTINUATION if place else TEXT, part, place == len(parts) - 1)
        for parts in messages
        for place, part in enumerate(parts)
    ]
    assembly = MessageAssembler(message_bytes_max=1000)
    assert fed(assembly, frames) == [b"".join(parts) for parts in messages]
    assert assembly.violation is None


@given(st.binary(max_size=30), st.sets(st.integers(0, 30)))
def test_text_is_refused_exactly_when_it_is_not_utf8(data: bytes, cuts: set[int]) -> None:
    places = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    parts = [data[first:last] for first, last in itertools.pairwise(places)]
    frames = [
        (CONTINUATION if place else TEXT, part, place == len(parts) - 1)
        for place, part in enumerate(parts)
    ]
    assembly = MessageAssembler(message_bytes_max=1000)
    try:
        data.decode()
        expected = [data], None
    except UnicodeDecodeError:
        expected = [], NOT_UTF8
    assert (fed(assembly, frames), assembly.violation) == expected


@pytest.mark.parametrize(
    ("opcode", "payload", "mask", "expected"),
    [
        (PING, b"", b"", b"\x89\x00"),
        (CLOSE, b"\x03\xe8", b"", b"\x88\x02\x03\xe8"),
        (PING, b"", b"abcd", b"\x89\x80abcd"),
        (PING, b"\x00\x00\x00\x00\x00", b"abcd", b"\x89\x85abcdabcda"),
    ],
)
def test_control_frame(opcode: int, payload: bytes, mask: bytes, expected: bytes) -> None:
    assert control_frame(opcode, payload, mask=mask) == expected


def test_a_long_reason_is_cut_between_two_characters() -> None:
    assert close_payload(1000) == b"\x03\xe8"
    assert close_payload(1002, "ä" * 100) == b"\x03\xea" + ("ä" * 61).encode()


@pytest.mark.parametrize(
    ("message", "frames"),
    [
        (b"", [b"\x81\x00"]),
        (b"x" * 125, [b"\x81\x7d" + b"x" * 125]),
        (b"x" * 126, [b"\x81\x7e\x00\x7e" + b"x" * 126]),
        (b"x" * 65535, [b"\x81\x7e\xff\xff" + b"x" * 65535]),
        (b"x" * 65536, [b"\x81\x7f" + (65536).to_bytes(8) + b"x" * 65536]),
        (
            b"x" * 140_000 + b"y",
            [
                b"\x01\x7f" + (70_000).to_bytes(8) + b"x" * 70_000,
                b"\x00\x7f" + (70_000).to_bytes(8) + b"x" * 70_000,
                b"\x80\x01y",
            ],
        ),
    ],
    ids=["nothing", "short", "not so short", "nearly long", "long", "in fragments"],
)
def test_a_text_is_said_by_a_server_as_the_rules_want_it(
    message: bytes, frames: list[bytes]
) -> None:
    in_parts = (message[:1], message[1:-1], message[-1:]) if len(message) > 1 else (message,)
    for text in (message, in_parts):
        parts = text_parts([text, b"{}"], frame_bytes_max=70_000)
        assert b"".join(parts) == b"".join((*frames, b"\x81\x02{}"))
