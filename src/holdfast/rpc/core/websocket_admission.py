"""Decide who may upgrade to a WebSocket, before anything is believed of what they say."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256

PATH = "/"
READY_PATH = "/readyz"

_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_HTTP_PORT = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a stranger asked for: the values of each header that matters, as often as it came."""

    path: str
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    authorizations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Who may come in: by which names of ours, and with which token.

    `hosts` are the only values of `Host` that are answered, and None means any one: on a Unix
    socket no browser can be tricked into asking. Without a `token` whoever reaches us may enter.
    `guests` are those who have a token of their own: their names, by the digests of their tokens.
    """

    hosts: frozenset[str] | None
    token: str | None
    guests: Mapping[bytes, str] = field(default_factory=dict[bytes, str])


@dataclass(frozen=True, slots=True)
class Verdict:
    """The HTTP status to answer with, and why; 101 lets the stranger in, a guest by its name."""

    status: int
    reason: str = ""
    guest: str = ""


ADMITTED = Verdict(101)
READY = Verdict(200, "ready")
NO_NAME = Verdict(400, "exactly one Host header is needed")
OTHER_NAME = Verdict(421, "this server has another name")
FROM_A_PAGE = Verdict(403, "pages in browsers are not served")
NOTHING_HERE = Verdict(404, "there is nothing here")
NO_TOKEN = Verdict(401, "a token is needed")
NO_ROOM = Verdict(503, "too many connections")


def judge(request: Request, policy: Policy, *, has_room: bool) -> Verdict:
    """What to answer: the first that holds.

    The name comes first: to a page of an attacker that calls us by its own, we say nothing.
    """
    names = {name.lower() for name in request.hosts}
    guest = _guest(request.authorizations, policy.guests)
    is_known = policy.token is None or _shows(request.authorizations, policy.token)
    reasons = (
        (len(request.hosts) != 1, NO_NAME),
        (policy.hosts is not None and not names <= policy.hosts, OTHER_NAME),
        (bool(request.origins), FROM_A_PAGE),
        (request.path == READY_PATH, READY),
        (request.path != PATH, NOTHING_HERE),
        (not is_known and guest is None, NO_TOKEN),
        (not has_room, NO_ROOM),
        (guest is not None, Verdict(ADMITTED.status, guest=guest or "")),
    )
    return next((verdict for holds, verdict in reasons if holds), ADMITTED)


def token_digest(token: str) -> bytes:
    """What is kept of a guest's token: enough to know it again, and to tell it to nobody."""
    return sha256(token.encode(errors="replace")).digest()


def host_names(address: str, port: int, names: Iterable[str] = ()) -> frozenset[str]:
    """The values of `Host` by which a listener may be called: loopback, its address, and names.

    A name may bring a port of its own, for those who come through a proxy.
    """
    own = [*_LOOPBACK_NAMES, *names]
    if not ipaddress.ip_address(address).is_unspecified:
        own.append(f"[{address}]" if ":" in address else address)
    found = {name.lower() for name in own if _has_port(name)}
    bare = {name.lower() for name in own if not _has_port(name)}
    found |= {f"{name}:{port}" for name in bare}
    return frozenset(found | bare) if port == _HTTP_PORT else frozenset(found)


def needs_token(address: str) -> bool:
    """Whether others than the users of this machine can reach an address."""
    return not ipaddress.ip_address(address).is_loopback


def _has_port(name: str) -> bool:
    return ":" in name.rpartition("]")[2]


def _shows(authorizations: tuple[str, ...], token: str) -> bool:
    """Whether the one `Authorization` is our token; takes as long for a near miss as for none."""
    shown = _shown(authorizations)
    is_same = hmac.compare_digest((shown or "").encode(errors="replace"), token.encode())
    return is_same and shown is not None


def _guest(authorizations: tuple[str, ...], guests: Mapping[bytes, str]) -> str | None:
    """Whose token the one `Authorization` is; no near miss has a digest that is near."""
    shown = _shown(authorizations)
    return None if shown is None else guests.get(token_digest(shown))


def _shown(authorizations: tuple[str, ...]) -> str | None:
    if len(authorizations) != 1:
        return None
    scheme, _, shown = authorizations[0].partition(" ")
    return shown.strip() if scheme.lower() == "bearer" else None
