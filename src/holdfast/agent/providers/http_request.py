"""What is asked over HTTP, what may come of it, and what is needed of whoever carries it.

Where a request goes, and which proxy of the person's stands in between.

A proxy is only ever asked for a tunnel: what goes through it is encrypted for the provider. What is
not encrypted goes to this very machine, and there nobody stands in between.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from ipaddress import ip_address, ip_network
from typing import Final, Protocol, Self
from urllib.parse import quote, unquote, urlsplit

from holdfast.agent.failures import SettingsUnreadable
from holdfast.agent.providers.http_response import Head
from holdfast.agent.providers.registry import is_loopback

_PORTS: Final = {"http": 80, "https": 443}
_NAMES: Final = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
_EXCEPT: Final = ("no_proxy", "NO_PROXY")
_PROXY_PORT: Final = 80


@dataclass(frozen=True, slots=True)
class Place:
    """A host and a port, whether it is spoken to in secret, and what is asked for there."""

    host: str
    port: int
    is_secret: bool = True
    target: str = "/"

    @classmethod
    def read(cls, url: str) -> Self:
        """The place that an address of a provider names."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        name = host if host.isascii() else host.encode("idna").decode("ascii")
        target = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~")
        is_secret = parts.scheme == "https"
        return cls(name, parts.port or _PORTS[parts.scheme], is_secret, target)

    @property
    def authority(self) -> str:
        """Host and port, as a proxy wants to be told them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def name(self) -> str:
        """The value of the header `host`: a port that goes without saying is left out."""
        usual = _PORTS["https" if self.is_secret else "http"]
        return self.authority.removesuffix(f":{usual}") if self.port == usual else self.authority


@dataclass(frozen=True, slots=True)
class Proxy:
    """Who makes tunnels for us, and how we are known there."""

    host: str
    port: int
    credentials: str = field(default="", repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """What a proxy is told beside where we want to go."""
        if not self.credentials:
            return {}
        encoded = b64encode(self.credentials.encode()).decode("ascii")
        return {"proxy-authorization": f"Basic {encoded}"}


@dataclass(frozen=True, slots=True)
class Proxies:
    """What the person's environment says about proxies; nothing, unless it is told."""

    variable: str = ""
    url: str = field(default="", repr=False)
    without: tuple[str, ...] = ()

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self:
        """What an environment says; of two spellings the small letters count."""
        variable = next((name for name in _NAMES if environment.get(name)), "")
        without = next((environment[name] for name in _EXCEPT if environment.get(name)), "")
        names = (each.strip().lower() for each in without.split(","))
        return cls(variable, environment.get(variable, ""), tuple(filter(None, names)))

    def before(self, place: Place) -> Proxy | None:
        """Who stands before a place; raises `SettingsUnreadable` if that cannot be used."""
        if not self.url or not place.is_secret or is_loopback(place.host):
            return None
        if any(_covers(each, place) for each in self.without):
            return None
        return self._proxy()

    def _proxy(self) -> Proxy:
        url = self.url if "://" in self.url else f"http://{self.url}"
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port, parts = None, None, urlsplit("")
        if host is None or parts.scheme != "http":
            problem = "a proxy must be like http://host:port"
            raise SettingsUnreadable(file=self.variable, problem=problem)
        known = parts.username is not None
        credentials = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        return Proxy(host, port or _PROXY_PORT, credentials if known else "")


def _covers(entry: str, place: Place) -> bool:
    """Whether an entry of the list of exceptions means a place."""
    name, colon, port = entry.rpartition(":")
    if colon and port.isdecimal() and "]" not in port and (":" not in name or "]" in name):
        if int(port) != place.port:
            return False
        entry = name
    entry, host = entry.strip("[]"), place.host.lower().rstrip(".")
    if entry == "*":
        return True
    try:
        return ip_address(host) in ip_network(entry, strict=False)
    except ValueError:
        name = entry.removeprefix("*").strip(".")
        return bool(name) and (host == name or host.endswith(f".{name}"))


class How(Enum):
    """In which way an answer was lost."""

    LATE = auto()
    UNCONNECTED = auto()  # nobody has picked up in time
    GONE = auto()
    UNTRUSTED = auto()  # whoever picked up is not who it should be


@dataclass(frozen=True, slots=True)
class Lost:
    """Why nothing comes, or nothing more; holds nothing of what was sent."""

    how: How
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """Where to, and with what; it is not shown, since a key is among it."""

    place: Place
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    method: str = "POST"


class WebAnswer(Protocol):
    """An answer that has begun."""

    @property
    def head(self) -> Head:
        """What it says before its body."""
        ...

    async def read(self, *, until: float) -> bytes | Lost:
        """The next bytes of the body as they come; none at its end."""
        ...

    def close(self) -> None:
        """Let go of it: a connection is kept if the answer is over, else ended at once."""
        ...


class Web(Protocol):
    """Carries requests to where they go."""

    async def ask(self, request: Request, *, connect: float, until: float) -> WebAnswer | Lost:
        """The answer once its head is here; `connect` is how many seconds that alone may take."""
        ...

    async def close(self) -> None:
        """End all connections."""
        ...
