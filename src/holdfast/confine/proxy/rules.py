"""Decide which hosts a shut-in process may reach, from names that are read exactly once.

A target is either a plain name or a plain address and a port; whatever could be read in two ways
is no target at all. What is connected to is what was read here, never the text that it came from.

Read what a client asks of a proxy, once: CONNECT, a request by its whole URL, or SOCKS 5.

What can be read in two ways is refused as a whole. Of a request that is passed on, the server sees
the host that was read here, and no header that was meant for the proxy.

Remember what a proxy let through and what it stopped, by host and in bounded memory.

Only hosts and ports are kept: paths, headers and what could not be read may hold secrets.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from holdfast.confine.failures import SandboxRequestUnfit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

PORTS: Final = (80, 443)  # what a rule without a port allows
_NAME_CHARS_MAX: Final = 253
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_PORT: Final = re.compile(r"[1-9][0-9]{0,4}")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_ANY: Final = "*."
_WIDEST: Final = 2  # labels that must follow the star

_IPV6_PUBLIC: Final = ipaddress.ip_network("2000::/3")
# Public by the letter of the registries, and yet a way back to this machine or its operator.
_NOT_PUBLIC: Final = (
    ipaddress.ip_network("168.63.129.16/32"),  # the host below every machine of one cloud
    ipaddress.ip_network("192.88.99.0/24"),  # relays that unwrap an inner address
    ipaddress.ip_network("2001::/23"),
    ipaddress.ip_network("2002::/16"),
    ipaddress.ip_network("3fff::/20"),  # for documents
)


@dataclass(frozen=True, slots=True)
class Target:
    """What a process wants to reach: a name in lower case or an address, and a port."""

    host: str | Address
    port: int

    def __str__(self) -> str:
        is_long = isinstance(self.host, ipaddress.IPv6Address)
        return f"[{self.host}]:{self.port}" if is_long else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class AllowRule:
    """One line of the list: a host, or all names below one; its ports."""

    host: str | Address
    ports: tuple[int, ...] = PORTS
    is_below: bool = False

    def covers(self, target: Target) -> bool:
        """Whether a target is meant."""
        if target.port not in self.ports:
            return False
        if self.is_below:
            return isinstance(target.host, str) and target.host.endswith(f".{self.host}")
        return target.host == self.host


@dataclass(frozen=True, slots=True)
class AllowList:
    """The hosts that may be reached; without a rule, none."""

    rules: tuple[AllowRule, ...] = ()

    def allows(self, target: Target) -> bool:
        """Whether the target may be asked for; where its name leads is judged by `admits`."""
        return any(rule.covers(target) for rule in self.rules)

    def admits(self, address: Address, port: int) -> bool:
        """Whether an address may be connected to: a public one, or one that the list itself names.

        So the owner of a DNS name cannot point it at this machine or the local network.
        """
        address = _plain(address)
        return is_public(address) or self.allows(Target(address, port))


def allow_list(*rules: str) -> AllowList:
    """Read `example.org`, `*.example.org`, `example.org:8443` and `192.0.2.1:80`, or raise."""
    return AllowList(tuple(_rule(text) for text in rules))


def read_target(authority: str, *, port_otherwise: int | None = None) -> Target | None:
    """What `HOST:PORT` names; None for everything that is not exactly that.

    There is no second opinion: users, fragments, escapes, zones, numbers in other bases and
    letters beyond ASCII name nothing.
    """
    host, port = _split(authority)
    found, number = _host(host), port_otherwise if port is None else _port(port)
    return Target(found, number) if found is not None and number is not None else None


def is_public(address: Address) -> bool:
    """Whether an address is public: not loopback, private, link-local or reserved."""
    address = _plain(address)
    return (
        address.is_global
        and not address.is_multicast
        and (address.version == 4 or address in _IPV6_PUBLIC)
        and not any(address in network for network in _NOT_PUBLIC)
    )


def _split(authority: str) -> tuple[str, str | None]:
    if authority.startswith("["):
        inside, bracket, port = authority.partition("]")
        if not bracket or (port and not port.startswith(":")):
            return "", None
        return f"{inside}]", port[1:] if port else None
    host, colon, port = authority.partition(":")
    return host, port if colon else None


def _port(text: str) -> int | None:
    number = int(text) if _PORT.fullmatch(text) else 0
    return number if 0 < number <= 0xFFFF else None


def _host(text: str) -> str | Address | None:
    if text.startswith("["):
        return _address(text[1:-1]) if ":" in text and "%" not in text else None
    name = text.lower() if text.isascii() else ""
    name = name.removesuffix(".")
    labels = name.split(".")
    if len(name) > _NAME_CHARS_MAX or not all(_LABEL.fullmatch(label) for label in labels):
        return None
    if _NUMBER.fullmatch(labels[-1]):  # no top-level name is a number, so it is an address
        return _address(name) if name == text else None
    return name


def _address(text: str) -> Address | None:
    try:
        return _plain(ipaddress.ip_address(text))
    except ValueError:
        return None


def _plain(address: Address) -> Address:
    """An IPv4 address that is written as an IPv6 one is an IPv4 address."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _rule(text: str) -> AllowRule:
    is_below = text.startswith(_ANY)
    host, port = _split(text.removeprefix(_ANY))
    target = read_target(text.removeprefix(_ANY), port_otherwise=PORTS[0])
    if target is None:
        given = "that" if "@" in text else repr(text)  # there may be a password in it
        raise SandboxRequestUnfit(reason=f"{given} is not a host, such as {_suggestion(text)}")
    if target.host == "localhost" or str(target.host).endswith(".localhost"):
        reason = f"{host} is this machine: give the address and the port, such as 127.0.0.1:8080"
        raise SandboxRequestUnfit(reason=reason)
    if is_below and (not isinstance(target.host, str) or target.host.count(".") + 1 < _WIDEST):
        raise SandboxRequestUnfit(reason=f"{text!r} is too wide: name what the star stands below")
    if not isinstance(target.host, str) and _is_nobodys(target.host):
        raise SandboxRequestUnfit(reason=f"{host} is an address that no process may reach")
    return AllowRule(target.host, PORTS if port is None else (target.port,), is_below=is_below)


def _is_nobodys(address: Address) -> bool:
    """Addresses that stand for many or for none, and those at which clouds hand out keys."""
    return address.is_link_local or address.is_multicast or address.is_unspecified


def _suggestion(text: str) -> str:
    """The host in a URL, if that is what was given."""
    found = re.search(r"//(?:[^/@]*@)?([A-Za-z0-9.-]+)", text)
    return found.group(1).lower() if found else "example.org, *.example.org or example.org:8443"


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
class ProxyRequest:
    """A parsed client request: the target, and the bytes to send to it first."""

    target: Target
    opening: bytes = b""
    is_tunnel: bool = True


def read_http(head: bytes) -> ProxyRequest | None:
    """What the head of a request asks for, without its last empty line; None if that is unclear."""
    first, *lines = head.split(b"\r\n")
    request = _REQUEST.fullmatch(first)
    headers = [_HEADER.fullmatch(line) for line in lines]
    if request is None or None in headers:
        return None
    method, url, version = request.groups()
    if method == b"CONNECT":
        target = read_target(url.decode("ascii"))
        return ProxyRequest(target) if target else None
    parts = _URL.fullmatch(url.decode("ascii"))
    target = read_target(parts[1], port_otherwise=_HTTP_PORT) if parts else None
    if parts is None or target is None or "#" in parts[0]:
        return None
    path = (parts[2] or "/").encode("ascii")
    path = path if path.startswith(b"/") else b"/" + path
    host = target if target.port != _HTTP_PORT else str(target).rpartition(":")[0]
    kept = [found[0] for found in headers if found and not found[1].lower().startswith(_OURS)]
    opening = [b"%b %b %b" % (method, path, version), f"Host: {host}".encode(), *kept]
    return ProxyRequest(
        target, b"\r\n".join([*opening, b"Connection: close"]) + HEAD_END, is_tunnel=False
    )


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


def read_socks(data: bytes) -> ProxyRequest | None:
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
    return ProxyRequest(target) if target else None


def socks_answer(status: int) -> bytes:
    """The answer to a request by the status that HTTP would give it; 200 is a connection."""
    code = {200: 0, 403: 2, 502: 4}.get(status, 1)
    return bytes((SOCKS, code, 0, _IPV4)) + bytes(6)


HOSTS_MAX: Final = 100


class DenialReason(StrEnum):
    """Why a connection was stopped."""

    UNLISTED = "not on the list"
    NEARBY = "its name leads to a private address"
    UNCLEAR = "a request that names no host clearly"


@dataclass(frozen=True, slots=True)
class Stopped:
    """Attempts of one kind that were stopped; `host` is empty if none could be read."""

    host: str
    why: DenialReason
    count: int


class Traffic:
    """All that one proxy did; of too many different hosts, the first ones and a number."""

    def __init__(self, *, hosts_max: int = HOSTS_MAX) -> None:
        self._hosts_max = hosts_max
        self._reached: Counter[str] = Counter()
        self._stopped: Counter[tuple[str, DenialReason]] = Counter()
        self.unnamed = 0  # connections to hosts for which there was no room

    def let_through(self, target: Target) -> None:
        """Note a connection that was made."""
        if str(target) in self._reached or len(self._reached) < self._hosts_max:
            self._reached[str(target)] += 1
        else:
            self.unnamed += 1

    def stop(self, target: Target | None, why: DenialReason) -> None:
        """Note a connection that was refused."""
        what = ("" if target is None else str(target), why)
        if what in self._stopped or len(self._stopped) < self._hosts_max:
            self._stopped[what] += 1
        else:
            self.unnamed += 1

    @property
    def reached(self) -> tuple[tuple[str, int], ...]:
        """The hosts that were reached, in the order of their first time, and how often."""
        return tuple(self._reached.items())

    @property
    def stopped(self) -> tuple[Stopped, ...]:
        """What was stopped, in the order of its first time."""
        return tuple(Stopped(host, why, count) for (host, why), count in self._stopped.items())
