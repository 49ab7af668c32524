"""The messages of the exec wire look as the real exec-server and its client write them."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.exec import protocol as wire


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (wire.InitializeParams("me"), b'{"clientName":"me"}'),
        (wire.InitializeParams("me", "s"), b'{"clientName":"me","resumeSessionId":"s"}'),
        (wire.StartResult("p", "none"), b'{"processId":"p","sandboxType":"none"}'),
        (
            wire.StartResult("p", "linuxSeccomp", "reduced", ("less",)),
            b'{"processId":"p","sandboxType":"linuxSeccomp","sandboxStrength":"reduced",'
            b'"sandboxLacks":["less"]}',
        ),
        (wire.WriteParams("p", "aGk=", "w"), b'{"processId":"p","chunk":"aGk=","writeId":"w"}'),
        (
            wire.ReadResult((), 1, False, None, False),
            b'{"chunks":[],"nextSeq":1,"exited":false,"exitCode":null,"closed":false,'
            b'"failure":null,"sandboxDenied":false,"firstRetainedSeq":null,"hasMore":null}',
        ),
        (
            wire.Exited("p", 3, 0),
            b'{"processId":"p","seq":3,"exitCode":0,"sandboxDenied":false}',
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_message_is_written_as_the_wire_has_it(message: wire.WireStruct, text: bytes) -> None:
    assert msgspec.json.encode(message) == text
    assert msgspec.json.decode(text, type=type(message)) == message


def test_what_a_newer_client_adds_is_ignored() -> None:
    text = (
        b'{"processId":"p","argv":["true"],"cwd":"file:///","env":{},"tty":false,'
        b'"metadata":{"threadId":"t"},"shellSnapshot":null,"enforceManagedNetwork":true}'
    )

    start = msgspec.json.decode(text, type=wire.StartParams)

    assert start == wire.StartParams("p", ("true",), "file:///", {}, False)
