"""Read what a client asks of a proxy, once: CONNECT, a request by its whole URL, or SOCKS 5.

What can be read in two ways is refused as a whole. Of a request that is passed on, the server sees
the host that was read here, and no header that was meant for the proxy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from holdfast.confine.core.allowlist import Target, read_target

SOCKS: Final = 5  # the first byte of a client that speaks it
SOCKS_GREETING: Final = bytes((SOCKS, 0))  # no password: who is inside may ask
SOCKS_UNFIT: Final = bytes((SOCKS, 0xFF))
HEAD_END: Final = b"\r\n\r\n"
HTTP_CONNECTED: Final = b"HTTP/1.1 200 Connected\r\n\r\n"

_CONNECT: Final = 1
_IPV4, _NAME, _IPV6 = 1, 3, 4
_REQUEST: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([!-~]+) (HTTP/1\.[01])")
_HEADER: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t -~\x80-\xff]*)")
_URL: Final = re.compile(r"http://([^/?]*)([/?].*)?", re.IGNORECASE | re.ASCII)
_HTTP_PORT: Final = 80
_OURS: Final = (b"host", b"connection", b"keep-alive", b"proxy-")
_PHRASES: Final = {
    400: "Bad Request",
    403: "Blocked By The Sandbox",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    502: "Bad Gateway",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """Where a client wants to go, and what the server there is told first."""

    target: Target
    opening: bytes = b""
    is_tunnel: bool = True


def read_http(head: bytes) -> Asked | None:
    """What the head of a request asks for, without its last empty line; None if that is unclear."""
    first, *lines = head.split(b"\r\n")
    request = _REQUEST.fullmatch(first)
    headers = [_HEADER.fullmatch(line) for line in lines]
    if request is None or None in headers:
        return None
    method, url, version = request.groups()
    if method == b"CONNECT":
        target = read_target(url.decode("ascii"))
        return Asked(target) if target else None
    parts = _URL.fullmatch(url.decode("ascii"))
    target = read_target(parts[1], port_otherwise=_HTTP_PORT) if parts else None
    if parts is None or target is None or "#" in parts[0]:
        return None
    path = (parts[2] or "/").encode("ascii")
    path = path if path.startswith(b"/") else b"/" + path
    host = target if target.port != _HTTP_PORT else str(target).rpartition(":")[0]
    kept = [found[0] for found in headers if found and not found[1].lower().startswith(_OURS)]
    opening = [b"%b %b %b" % (method, path, version), f"Host: {host}".encode(), *kept]
    return Asked(target, b"\r\n".join([*opening, b"Connection: close"]) + HEAD_END, is_tunnel=False)


def http_answer(status: int, reason: str) -> bytes:
    """A whole answer of the proxy itself; nothing follows it."""
    body = f"holdfast: {reason}\n".encode("ascii", "backslashreplace")
    head = f"HTTP/1.1 {status} {_PHRASES[status]}\r\nContent-Type: text/plain\r\n"
    head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


def socks_wanting(data: bytes) -> int:
    """How many bytes are missing, at least, before `read_socks` can read a request."""
    if len(data) < 5:
        return 5 - len(data)
    size = {_IPV4: 4, _NAME: 1 + data[4], _IPV6: 16}.get(data[3], 1)
    return max(0, 4 + size + 2 - len(data))


def read_socks(data: bytes) -> Asked | None:
    """What a whole SOCKS request asks for; None if that is unclear or no connection."""
    if socks_wanting(data) or data[:3] != bytes((SOCKS, _CONNECT, 0)):
        return None
    kind, host, port = data[3], data[4:-2], int.from_bytes(data[-2:], "big")
    if kind == _NAME:
        name = host[1:].decode("ascii", "replace")
        authority = f"[{name}]" if ":" in name else name
    elif kind == _IPV4:
        authority = str(IPv4Address(host))
    elif kind == _IPV6:
        authority = f"[{IPv6Address(host)}]"
    else:
        return None
    target = read_target(f"{authority}:{port}")
    return Asked(target) if target else None


def socks_answer(status: int) -> bytes:
    """The answer to a request by the status that HTTP would give it; 200 is a connection."""
    code = {200: 0, 403: 2, 502: 4}.get(status, 1)
    return bytes((SOCKS, code, 0, _IPV4)) + bytes(6)
