"""What a proxy is asked for is read once, whatever the dialect."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.confine.proxy.rules import (
    ProxyRequest,
    Target,
    http_answer,
    read_http,
    read_socks,
    socks_answer,
    socks_wanting,
)

EXAMPLE = Target("example.org", 80)


def lines(*each: str) -> bytes:
    return "\r\n".join(each).encode("latin-1")


def test_connect_asks_for_a_tunnel() -> None:
    head = lines("CONNECT example.org:443 HTTP/1.1", "Host: other.example", "User-Agent: x")

    assert read_http(head) == ProxyRequest(Target("example.org", 443))


def test_a_whole_url_is_passed_on_with_the_host_that_was_read() -> None:
    head = lines(
        "GET http://Example.org/a?b=c HTTP/1.1",
        "Host: evil.example",
        "HOST: allowed.example",
        "Accept: */*",
        "Proxy-Authorization: Basic c2VjcmV0",
        "Proxy-Connection: keep-alive",
        "Connection: keep-alive",
        "Keep-Alive: 5",
    )
    opening = lines(
        "GET /a?b=c HTTP/1.1",
        "Host: example.org",
        "Accept: */*",
        "Connection: close",
        "",
        "",
    )

    assert read_http(head) == ProxyRequest(EXAMPLE, opening, is_tunnel=False)


@pytest.mark.parametrize(
    ("url", "target", "path", "host"),
    [
        ("http://example.org", EXAMPLE, "/", "example.org"),
        ("HTTP://example.org?q", EXAMPLE, "/?q", "example.org"),
        ("http://example.org/@x", EXAMPLE, "/@x", "example.org"),
        ("http://example.org:8080/", Target("example.org", 8080), "/", "example.org:8080"),
        ("http://[2001:db8::1]/", Target(IPv6Address("2001:db8::1"), 80), "/", "[2001:db8::1]"),
        ("http://192.0.2.1/", Target(IPv4Address("192.0.2.1"), 80), "/", "192.0.2.1"),
    ],
)
def test_url(url: str, target: Target, path: str, host: str) -> None:
    opening = lines(f"GET {path} HTTP/1.0", f"Host: {host}", "Connection: close", "", "")

    assert read_http(lines(f"GET {url} HTTP/1.0")) == ProxyRequest(target, opening, is_tunnel=False)


@pytest.mark.promise("C14")
@pytest.mark.parametrize(
    "head",
    [
        "",
        "GET / HTTP/1.1",
        "GET https://example.org/ HTTP/1.1",
        "GET ftp://example.org/ HTTP/1.1",
        "GET http:example.org/ HTTP/1.1",
        "GET http:/example.org/ HTTP/1.1",
        "GET http:///example.org/ HTTP/1.1",
        "GET http://user@example.org/ HTTP/1.1",
        "GET http://example.org@evil.com/ HTTP/1.1",
        "GET http://evil.com#example.org/ HTTP/1.1",
        "GET http://evil.com/#example.org HTTP/1.1",
        "GET http://evil.com\\@example.org/ HTTP/1.1",
        "GET http://example.org%00.evil.com/ HTTP/1.1",
        "GET http://example.org\0.evil.com/ HTTP/1.1",
        "GET http://example.org /x HTTP/1.1",
        "GET  http://example.org/ HTTP/1.1",
        "GET http://example.org/ HTTP/1.1 ",
        "GET http://example.org/ HTTP/2.0",
        "GET http://example.org/ http/1.1",
        "GET http://example.org/",
        "G:T http://example.org/ HTTP/1.1",
        "GET http://example.org/\xe4 HTTP/1.1",
        "CONNECT example.org HTTP/1.1",
        "CONNECT http://example.org:443 HTTP/1.1",
        "CONNECT example.org:443/ HTTP/1.1",
        "CONNECT evil.com:443#example.org:443 HTTP/1.1",
        "connect example.org:443 HTTP/1.1",
        "GET http://example.org/ HTTP/1.1\r\n folded",
        "GET http://example.org/ HTTP/1.1\r\nHost : example.org",
        "GET http://example.org/ HTTP/1.1\r\nno colon",
        "GET http://example.org/ HTTP/1.1\r\nA: b\nHost: evil.com",
        "GET http://example.org/ HTTP/1.1\r\nA: b\rHost: evil.com",
        "GET http://example.org/ HTTP/1.1\r\nA: \0",
        "GET http://example.org/ HTTP/1.1\nHost: evil.com",
    ],
)
def test_what_is_unclear_asks_for_nothing(head: str) -> None:
    assert read_http(head.encode("latin-1")) is None


def socks(kind: int, host: bytes, port: int = 443, *, start: bytes = b"\x05\x01\x00") -> bytes:
    return start + bytes((kind,)) + host + port.to_bytes(2, "big")


def named(host: bytes) -> bytes:
    return bytes((len(host),)) + host


@pytest.mark.parametrize(
    ("data", "host"),
    [
        (socks(3, named(b"Example.org")), "example.org"),
        (socks(1, bytes((192, 0, 2, 1))), IPv4Address("192.0.2.1")),
        (socks(3, named(b"192.0.2.1")), IPv4Address("192.0.2.1")),
        (socks(4, IPv6Address("2001:db8::1").packed), IPv6Address("2001:db8::1")),
        (socks(3, named(b"2001:db8::1")), IPv6Address("2001:db8::1")),
        (socks(4, IPv6Address("::ffff:127.0.0.1").packed), IPv4Address("127.0.0.1")),
    ],
)
def test_socks_names_a_host(data: bytes, host: str | IPv4Address | IPv6Address) -> None:
    assert read_socks(data) == ProxyRequest(Target(host, 443))


@pytest.mark.promise("C14")
@pytest.mark.parametrize(
    "data",
    [
        socks(3, named(b"allowed.com\0.evil.com")),
        socks(3, named(b"allowed.com\0")),
        socks(3, named(b"allowed.com:443")),
        socks(3, named(b"evil.com#allowed.com")),
        socks(3, named(b"allowed.com]:443")),
        socks(3, named(b"\xd0\xb0llowed.com")),
        socks(3, named(b"0x7f.1")),
        socks(3, named(b"")),
        socks(3, named(b"example.org"), 0),
        socks(2, b"\x00"),
        socks(3, named(b"example.org"), start=b"\x05\x02\x00"),  # to listen
        socks(3, named(b"example.org"), start=b"\x05\x03\x00"),  # datagrams
        socks(3, named(b"example.org"), start=b"\x05\x01\x01"),
        socks(3, named(b"example.org"), start=b"\x04\x01\x00"),
        b"",
    ],
)
def test_unclear_socks_asks_for_nothing(data: bytes) -> None:
    assert read_socks(data) is None


@given(st.integers(0, 300), st.sampled_from([socks(3, named(b"example.org")), socks(1, bytes(4))]))
def test_a_request_is_whole_exactly_when_nothing_is_wanting(length: int, data: bytes) -> None:
    assert (socks_wanting(data[:length]) == 0) == (length >= len(data))


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    assert read_http(data) is None or b" HTTP/1." in data
    read_socks(data)


def test_answers_are_whole() -> None:
    assert http_answer(403, "ä") == (
        b"HTTP/1.1 403 Blocked By The Sandbox\r\nContent-Type: text/plain\r\n"
        b"Content-Length: 15\r\nConnection: close\r\n\r\nholdfast: \\xe4\n"
    )
    assert socks_answer(200) == b"\x05\x00\x00\x01" + bytes(6)
    assert [socks_answer(status)[1] for status in (403, 502, 400)] == [2, 4, 1]
