"""Pure rules of the WebSocket transport: addresses, admission, frames, close codes, pings."""

from __future__ import annotations

import codecs
import hmac
import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from hashlib import sha256
from struct import Struct
from urllib.parse import urlsplit

from holdfast.failures import Failure
from holdfast.rpc.failures import AddressInvalid, ConnectionClosed, ConnectionLost, MessageTooLarge

_NAME_BYTES_MAX = 255  # of a file


@dataclass(frozen=True, slots=True)
class TcpAddress:
    """A host name or IP address, and a port; 0 lets a listener pick one."""

    host: str
    port: int

    @property
    def authority(self) -> str:
        """Host and port, as in a URL and in a `Host` header."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"ws://{self.authority}"


@dataclass(frozen=True, slots=True)
class UnixAddress:
    """The path of a Unix socket."""

    path: str
    authority = "localhost"

    def __str__(self) -> str:
        return f"unix://{self.path}"


def read_address(url: str) -> TcpAddress | UnixAddress:
    """Parse `ws://HOST:PORT` or `unix:///PATH`; raises `AddressInvalid` for anything else."""
    if url.startswith("unix://"):
        path = url.removeprefix("unix://")
        if not path.startswith("/"):
            raise AddressInvalid(url=url, reason="its path is not absolute")
        if not _is_path(path):
            raise AddressInvalid(url=repr(url), reason="no file can have this name")
        return UnixAddress(path)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise AddressInvalid(url=url, reason=str(error).lower()) from error
    if parts.scheme != "ws":
        raise AddressInvalid(url=url, reason="it begins with neither ws:// nor unix://")
    if not host or port is None:
        raise AddressInvalid(url=url, reason="it names no host and port")
    if parts.path not in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc:
        # The rest of the URL is not quoted: it may contain a secret.
        where = str(TcpAddress(host, port))
        raise AddressInvalid(url=where, reason="nothing may follow the port or precede the host")
    if not _is_name(host):
        raise AddressInvalid(url=repr(url), reason="no host can have this name")
    return TcpAddress(host, port)


def _is_path(path: str) -> bool:
    """Whether the kernel accepts a path: no NUL, no component over 255 bytes."""
    try:
        names = path.encode(errors="surrogateescape").split(b"/")
    except UnicodeEncodeError:
        return False
    return "\0" not in path and all(len(name) <= _NAME_BYTES_MAX for name in names)


def _is_name(host: str) -> bool:
    """Whether the resolver accepts a host name."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return "\0" not in host


# Admission. Decided before any other byte of the client is trusted.

PATH = "/"
READY_PATH = "/readyz"

_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_HTTP_PORT = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeRequest:
    """The path and the relevant headers of an HTTP upgrade request, repeated headers included."""

    path: str
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    authorizations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionPolicy:
    """Which clients may connect: by `Host` header and by token.

    `hosts` are the accepted values of `Host`; None accepts any, for a Unix socket, which no browser
    can be tricked into opening (DNS rebinding). Without a `token` every client is accepted.
    `guests` maps digests of further tokens to names.
    """

    hosts: frozenset[str] | None
    token: str | None
    guests: Mapping[bytes, str] = field(default_factory=dict[bytes, str])


@dataclass(frozen=True, slots=True)
class UpgradeReply:
    """The HTTP status to reply with, and why; 101 accepts the client, with its guest name if
    any.
    """

    status: int
    reason: str = ""
    guest: str = ""


ADMITTED = UpgradeReply(101)
READY = UpgradeReply(200, "ready")
HOST_MISSING = UpgradeReply(400, "exactly one Host header is needed")
HOST_REFUSED = UpgradeReply(421, "this server has another name")
ORIGIN_REFUSED = UpgradeReply(403, "pages in browsers are not served")
NOT_FOUND = UpgradeReply(404, "there is nothing here")
TOKEN_REQUIRED = UpgradeReply(401, "a token is needed")
SERVER_FULL = UpgradeReply(503, "too many connections")


def upgrade_reply(
    request: UpgradeRequest, policy: AdmissionPolicy, *, has_room: bool
) -> UpgradeReply:
    """Return the first reply whose condition holds.

    `Host` is checked first: a web page that reaches us under its own name (DNS rebinding) learns
    nothing.
    """
    names = {name.lower() for name in request.hosts}
    guest = _guest(request.authorizations, policy.guests)
    is_known = policy.token is None or _shows(request.authorizations, policy.token)
    reasons = (
        (len(request.hosts) != 1, HOST_MISSING),
        (policy.hosts is not None and not names <= policy.hosts, HOST_REFUSED),
        (bool(request.origins), ORIGIN_REFUSED),
        (request.path == READY_PATH, READY),
        (request.path != PATH, NOT_FOUND),
        (not is_known and guest is None, TOKEN_REQUIRED),
        (not has_room, SERVER_FULL),
        (guest is not None, UpgradeReply(ADMITTED.status, guest=guest or "")),
    )
    return next((verdict for holds, verdict in reasons if holds), ADMITTED)


def token_digest(token: str) -> bytes:
    """Return the hash of a guest token: enough to recognise the token, useless to forge it."""
    return sha256(token.encode(errors="replace")).digest()


def host_names(address: str, port: int, names: Iterable[str] = ()) -> frozenset[str]:
    """Return the accepted `Host` values of a listener: loopback names, its address, and `names`.

    A name may carry its own port, for clients behind a proxy.
    """
    own = [*_LOOPBACK_NAMES, *names]
    if not ipaddress.ip_address(address).is_unspecified:
        own.append(f"[{address}]" if ":" in address else address)
    found = {name.lower() for name in own if _has_port(name)}
    bare = {name.lower() for name in own if not _has_port(name)}
    found |= {f"{name}:{port}" for name in bare}
    return frozenset(found | bare) if port == _HTTP_PORT else frozenset(found)


def needs_token(address: str) -> bool:
    """Whether other machines can reach an address."""
    return not ipaddress.ip_address(address).is_loopback


def _has_port(name: str) -> bool:
    return ":" in name.rpartition("]")[2]


def _shows(authorizations: tuple[str, ...], token: str) -> bool:
    """Whether the one `Authorization` header carries our token; compared in constant time."""
    shown = _shown(authorizations)
    is_same = hmac.compare_digest((shown or "").encode(errors="replace"), token.encode())
    return is_same and shown is not None


def _guest(authorizations: tuple[str, ...], guests: Mapping[bytes, str]) -> str | None:
    """Return the name bound to the token of the one `Authorization` header; None if unknown."""
    shown = _shown(authorizations)
    return None if shown is None else guests.get(token_digest(shown))


def _shown(authorizations: tuple[str, ...]) -> str | None:
    if len(authorizations) != 1:
        return None
    scheme, _, shown = authorizations[0].partition(" ")
    return shown.strip() if scheme.lower() == "bearer" else None


CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
CONTROL_BYTES_MAX = 125

PROTOCOL_BROKEN, TEXT_BROKEN, TOO_LARGE = 1002, 1007, 1009

_FINAL = 0x80
_SHORT, _LONG = Struct("!BBH"), Struct("!BBQ")
_utf8 = codecs.getincrementaldecoder("utf-8")


@dataclass(frozen=True, slots=True)
class ProtocolViolation:
    """The close code and the reason for a protocol rule that the other side broke."""

    code: int
    reason: str


NOT_UTF8 = ProtocolViolation(TEXT_BROKEN, "a text is not UTF-8")


Text = bytes | tuple[bytes, ...]
"""A message, whole or in parts."""


def joined(message: Text) -> bytes:
    """Return a message in one piece."""
    return message if isinstance(message, bytes) else b"".join(message)


def control_frame(opcode: int, payload: bytes, *, mask: bytes) -> bytes:
    """Encode a control frame; an empty mask is for servers."""
    assert len(payload) <= CONTROL_BYTES_MAX
    head = bytes((_FINAL | opcode, (0x80 if mask else 0) | len(payload)))
    if not mask:
        return head + payload
    masked = bytes(byte ^ mask[place % 4] for place, byte in enumerate(payload))
    return head + mask + masked


def close_payload(code: int, reason: str = "") -> bytes:
    """Encode the payload of a close frame; a long reason is cut between two characters."""
    said = reason.encode()[: CONTROL_BYTES_MAX - 2].decode(errors="ignore")
    return code.to_bytes(2) + said.encode()


def text_parts(messages: Iterable[Text], *, frame_bytes_max: int) -> list[bytes | memoryview]:
    """Encode messages as unmasked server frames: headers and payload parts, without copies.

    A message over `frame_bytes_max` is fragmented. Payloads are not validated: their producer
    encoded them.
    """
    parts: list[bytes | memoryview] = []
    for message in messages:
        pieces = (message,) if isinstance(message, bytes) else message
        size = sum(map(len, pieces))
        if size <= frame_bytes_max:
            parts.append(_head(_FINAL | TEXT, size))
            parts += pieces
            continue
        view, opcode = memoryview(joined(message)), TEXT
        for first in range(0, size, frame_bytes_max):
            part = view[first : first + frame_bytes_max]
            is_last = first + frame_bytes_max >= size
            parts += (_head(_FINAL | opcode if is_last else opcode, len(part)), part)
            opcode = CONTINUATION
    return parts


def _head(first: int, size: int) -> bytes:
    if size <= CONTROL_BYTES_MAX:
        return bytes((first, size))
    if size < 2**16:
        return _SHORT.pack(first, 126, size)
    return _LONG.pack(first, 127, size)


class MessageAssembler:
    """Assembles fragmented messages of one side, in order.

    Buffers one unfinished message up to the limit. Text that can no longer become valid UTF-8 is
    refused at once. After a violation nothing more is returned.
    """

    def __init__(self, *, message_bytes_max: int) -> None:
        self._bytes_max = message_bytes_max
        self._parts: list[bytes] = []
        self._parts_bytes = 0
        # Of the unfinished message; there is none while it is this.
        self._opcode = CONTINUATION
        self._text = _utf8()
        self.violation: ProtocolViolation | None = None

    def take(self, opcode: int, payload: bytes, *, is_last: bool, reserved: bool) -> bytes | None:
        """Take a data frame; returns the message that it completes, or None."""
        if self.violation is not None:
            return None
        is_whole = opcode == TEXT and is_last and not self._parts and not reserved
        if is_whole and len(payload) <= self._bytes_max and payload.isascii():
            # By far the most frequent.
            return payload
        self.violation = self._broken(opcode, payload, reserved=reserved)
        if self.violation is not None:
            return None
        self._opcode = self._opcode or opcode
        self._parts.append(payload)
        self._parts_bytes += len(payload)
        if self._opcode == TEXT and not self._continues_text(payload, is_last=is_last):
            self.violation = NOT_UTF8
            return None
        if not is_last:
            return None
        message = b"".join(self._parts) if len(self._parts) > 1 else payload
        self._parts, self._parts_bytes, self._opcode = [], 0, CONTINUATION
        return message

    def _broken(self, opcode: int, payload: bytes, *, reserved: bool) -> ProtocolViolation | None:
        if reserved:
            return ProtocolViolation(PROTOCOL_BROKEN, "a reserved bit is set")
        if self._opcode == CONTINUATION and opcode == CONTINUATION:
            return ProtocolViolation(PROTOCOL_BROKEN, "there is no message to continue")
        if self._opcode != CONTINUATION and opcode != CONTINUATION:
            return ProtocolViolation(PROTOCOL_BROKEN, "the last message is not finished")
        if self._parts_bytes + len(payload) > self._bytes_max:
            return ProtocolViolation(TOO_LARGE, f"a message has more than {self._bytes_max} bytes")
        return None

    def _continues_text(self, payload: bytes, *, is_last: bool) -> bool:
        try:
            self._text.decode(payload, is_last)
        except UnicodeDecodeError:
            return False
        return True


NORMAL, GOING_AWAY = 1000, 1001

_CODES = frozenset((*range(1000, 1004), *range(1007, 1015), *range(3000, 5000)))


def close_failure(payload: bytes) -> tuple[Failure, int]:
    """Return the failure for a close frame of the other side, and the code to reply with."""
    if not payload:
        return ConnectionClosed(reason="the other side closed it"), NORMAL
    code = int.from_bytes(payload[:2])
    if code not in _CODES:
        return violation_failure(
            ProtocolViolation(PROTOCOL_BROKEN, f"close code {code}")
        ), PROTOCOL_BROKEN
    if code in (NORMAL, GOING_AWAY):
        return ConnectionClosed(reason="the other side closed it"), code
    said = f"the other side gave up with code {code} {payload[2:].decode(errors='replace')}"
    return ConnectionLost(reason=said.rstrip()), code


def violation_failure(violation: ProtocolViolation, *, bytes_max: int = 0) -> Failure:
    """Return the failure for a protocol violation or an exceeded size limit."""
    if violation.code == TOO_LARGE:
        return MessageTooLarge(bytes_max=bytes_max)
    return ConnectionLost(reason=f"the other side broke the protocol: {violation.reason}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PingPolicy:
    """Ping interval, and the seconds without any byte after which a connection is lost."""

    every: float = 5.0
    silence_longest: float = 10.0

    @property
    def tick(self) -> float:
        """The polling interval in seconds."""
        return min(self.every, self.silence_longest) / 2


@dataclass(frozen=True, slots=True)
class PingState:
    """Consecutive ticks without bytes, and ticks since the last ping.

    Ticks are counted, not seconds: while our own process was stopped, the other side was not
    silent.
    """

    silent: int = 0
    unpinged: int = 0


class PingAction(Enum):
    """What a tick requires."""

    WAIT = auto()
    PING = auto()
    GIVE_UP = auto()


def ping_step(watch: PingState, pulse: PingPolicy, *, heard: bool) -> tuple[PingState, PingAction]:
    """Count one tick; `heard` if bytes arrived since the last one, or could not because we paused.

    Pings are sent however much is heard: they are the keepalive of a side that has nothing to send.
    """
    silent = 0 if heard else watch.silent + 1
    if silent * pulse.tick >= pulse.silence_longest:
        return PingState(silent, 0), PingAction.GIVE_UP
    unpinged = watch.unpinged + 1
    if unpinged * pulse.tick >= pulse.every:
        return PingState(silent, 0), PingAction.PING
    return PingState(silent, unpinged), PingAction.WAIT
