"""An address is read whole or refused, and a secret in it is not repeated."""

from __future__ import annotations

import pytest

from holdfast.rpc.failures import AddressInvalid
from holdfast.rpc.transports.websocket_protocol import TcpAddress, UnixAddress, read_address


@pytest.mark.parametrize(
    ("url", "expected", "authority"),
    [
        ("ws://127.0.0.1:0", TcpAddress("127.0.0.1", 0), "127.0.0.1:0"),
        ("ws://box.example:80/", TcpAddress("box.example", 80), "box.example:80"),
        ("ws://[::1]:9", TcpAddress("::1", 9), "[::1]:9"),
        ("unix:///run/x/s", UnixAddress("/run/x/s"), "localhost"),
    ],
)
def test_reads(url: str, expected: TcpAddress | UnixAddress, authority: str) -> None:
    address = read_address(url)
    assert (address, address.authority, str(address)) == (expected, authority, url.rstrip("/"))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:9",
        "wss://127.0.0.1:9",
        "http://127.0.0.1:9",
        "ws://127.0.0.1",
        "ws://:9",
        "ws://127.0.0.1:99999",
        "ws://127.0.0.1:x",
        "ws://[::1:9",
        "ws://127.0.0.1:9/path",
        "ws://127.0.0.1:9/?token=s3cret",
        "ws://s3cret@127.0.0.1:9",
        "ws://127.0.0.1:9/#s3cret",
        "unix://relative",
        "unix://",
        "unix:///with\0nul",
        "unix:///\ud800",
        "unix:///" + 256 * "x",
        "ws://a..b:9",
        "ws://.:9",
        "ws://" + 64 * "a" + ".com:9",
        "ws://\ud800:9",
        "ws://with\0nul:9",
    ],
)
def test_refuses(url: str) -> None:
    with pytest.raises(AddressInvalid) as refused:
        read_address(url)
    assert "s3cret" not in str(refused.value)
