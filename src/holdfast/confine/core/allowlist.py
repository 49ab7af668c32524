"""Decide which hosts a shut-in process may reach, from names that are read exactly once.

A target is either a plain name or a plain address and a port; whatever could be read in two ways
is no target at all. What is connected to is what was read here, never the text that it came from.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
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
class Rule:
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

    rules: tuple[Rule, ...] = ()

    def allows(self, target: Target) -> bool:
        """Whether the target may be asked for; where its name leads is judged by `admits`."""
        return any(rule.covers(target) for rule in self.rules)

    def admits(self, address: Address, port: int) -> bool:
        """Whether an address may be connected to: a public one, or one that the list itself names.

        So nobody who rules a name can make it lead to this machine or to its neighbours.
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
    """Whether an address is somebody's on the internet, and nothing nearer than that."""
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


def _rule(text: str) -> Rule:
    is_below = text.startswith(_ANY)
    host, port = _split(text.removeprefix(_ANY))
    target = read_target(text.removeprefix(_ANY), port_otherwise=PORTS[0])
    if target is None:
        given = "that" if "@" in text else repr(text)  # there may be a password in it
        raise SandboxRequestUnfit(reason=f"{given} is no host, such as {_suggestion(text)}")
    if target.host == "localhost" or str(target.host).endswith(".localhost"):
        reason = f"{host} is this machine: give the address and the port, such as 127.0.0.1:8080"
        raise SandboxRequestUnfit(reason=reason)
    if is_below and (not isinstance(target.host, str) or target.host.count(".") + 1 < _WIDEST):
        raise SandboxRequestUnfit(reason=f"{text!r} is too wide: name what the star stands below")
    if not isinstance(target.host, str) and _is_nobodys(target.host):
        raise SandboxRequestUnfit(reason=f"{host} is an address that no process may reach")
    return Rule(target.host, PORTS if port is None else (target.port,), is_below=is_below)


def _is_nobodys(address: Address) -> bool:
    """Addresses that stand for many or for none, and those at which clouds hand out keys."""
    return address.is_link_local or address.is_multicast or address.is_unspecified


def _suggestion(text: str) -> str:
    """The host in a URL, if that is what was given."""
    found = re.search(r"//(?:[^/@]*@)?([A-Za-z0-9.-]+)", text)
    return found.group(1).lower() if found else "example.org, *.example.org or example.org:8443"
