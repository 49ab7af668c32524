"""Read from a URL where a WebSocket is: a host and a port, or a path."""

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
    """A host by name or number, and a port; 0 lets a listener choose one."""

    host: str
    port: int

    @property
    def authority(self) -> str:
        """Both, as in a URL and in a `Host` header."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"ws://{self.authority}"


@dataclass(frozen=True, slots=True)
class UnixAddress:
    """A path at which a Unix socket is."""

    path: str
    authority = "localhost"

    def __str__(self) -> str:
        return f"unix://{self.path}"


def read_address(url: str) -> TcpAddress | UnixAddress:
    """What `ws://HOST:PORT` or `unix:///PATH` says; nothing else may be in it, least a token."""
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
        # The rest is not repeated: somebody may have put a secret there.
        where = str(TcpAddress(host, port))
        raise AddressInvalid(url=where, reason="nothing may follow the port or precede the host")
    if not _is_name(host):
        raise AddressInvalid(url=repr(url), reason="no host can have this name")
    return TcpAddress(host, port)


def _is_path(path: str) -> bool:
    """Whether the system can be asked about a path at all."""
    try:
        names = path.encode(errors="surrogateescape").split(b"/")
    except UnicodeEncodeError:
        return False
    return "\0" not in path and all(len(name) <= _NAME_BYTES_MAX for name in names)


def _is_name(host: str) -> bool:
    """Whether the system can be asked about a host at all."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return "\0" not in host


# Decide who may upgrade to a WebSocket, before anything is believed of what they say.

PATH = "/"
READY_PATH = "/readyz"

_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_HTTP_PORT = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeRequest:
    """What a stranger asked for: the values of each header that matters, as often as it came."""

    path: str
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    authorizations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionPolicy:
    """Who may come in: by which names of ours, and with which token.

    `hosts` are the only values of `Host` that are answered, and None means any one: on a Unix
    socket no browser can be tricked into asking. Without a `token` whoever reaches us may enter.
    `guests` are those who have a token of their own: their names, by the digests of their tokens.
    """

    hosts: frozenset[str] | None
    token: str | None
    guests: Mapping[bytes, str] = field(default_factory=dict[bytes, str])


@dataclass(frozen=True, slots=True)
class UpgradeReply:
    """The HTTP status to answer with, and why; 101 lets the stranger in, a guest by its name."""

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
    """What to answer: the first that holds.

    The name comes first: to a page of an attacker that calls us by its own, we say nothing.
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


# Make whole messages of WebSocket frames, and refuse those that break the rules.

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
CONTROL_BYTES_MAX = 125

PROTOCOL_BROKEN, TEXT_BROKEN, TOO_LARGE = 1002, 1007, 1009

_FINAL = 0x80
_SHORT, _LONG = Struct("!BBH"), Struct("!BBQ")
_utf8 = codecs.getincrementaldecoder("utf-8")


@dataclass(frozen=True, slots=True)
class ProtocolViolation:
    """The close code for a rule that the other side broke, and which rule that was."""

    code: int
    reason: str


NOT_UTF8 = ProtocolViolation(TEXT_BROKEN, "a text is not UTF-8")


Text = bytes | tuple[bytes, ...]
"""A message, whole or in parts."""


def joined(message: Text) -> bytes:
    """A message in one piece."""
    return message if isinstance(message, bytes) else b"".join(message)


def control_frame(opcode: int, payload: bytes, *, mask: bytes) -> bytes:
    """A control frame as it looks on the wire; a server has no mask."""
    assert len(payload) <= CONTROL_BYTES_MAX
    head = bytes((_FINAL | opcode, (0x80 if mask else 0) | len(payload)))
    if not mask:
        return head + payload
    masked = bytes(byte ^ mask[place % 4] for place, byte in enumerate(payload))
    return head + mask + masked


def close_payload(code: int, reason: str = "") -> bytes:
    """What a close frame says; a reason that is too long is cut, between two characters."""
    said = reason.encode()[: CONTROL_BYTES_MAX - 2].decode(errors="ignore")
    return code.to_bytes(2) + said.encode()


def text_parts(messages: Iterable[Text], *, frame_bytes_max: int) -> list[bytes | memoryview]:
    """Texts as they look on the wire when a server says them: heads, and what belongs to each.

    What is too large for one frame is fragmented. Nothing else is copied, nor looked at: who says
    it has made it of characters.
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
    """The messages of one side, whole and in order, however they were fragmented.

    Holds one unfinished message and no more of it than the limit. A text that can no longer
    become UTF-8 is refused at once. After a violation nothing more comes out.
    """

    def __init__(self, *, message_bytes_max: int) -> None:
        self._bytes_max = message_bytes_max
        self._parts: list[bytes] = []
        self._parts_bytes = 0
        self._opcode = CONTINUATION  # of the unfinished message; there is none while it is this
        self._text = _utf8()
        self.violation: ProtocolViolation | None = None

    def take(self, opcode: int, payload: bytes, *, is_last: bool, reserved: bool) -> bytes | None:
        """Take a data frame; return the message that it completes, if it does."""
        if self.violation is not None:
            return None
        is_whole = opcode == TEXT and is_last and not self._parts and not reserved
        if is_whole and len(payload) <= self._bytes_max and payload.isascii():
            return payload  # by far the most frequent
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


# Decide what the end of a WebSocket means, and which answer it gets.

NORMAL, GOING_AWAY = 1000, 1001

_CODES = frozenset((*range(1000, 1004), *range(1007, 1015), *range(3000, 5000)))


def close_failure(payload: bytes) -> tuple[Failure, int]:
    """How the other side ended it with a close frame, and the code to answer with."""
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
    """How it ends when the other side broke a rule or the size limit."""
    if violation.code == TOO_LARGE:
        return MessageTooLarge(bytes_max=bytes_max)
    return ConnectionLost(reason=f"the other side broke the protocol: {violation.reason}")


# Decide when to ping, and when silence means that nobody is there.


@dataclass(frozen=True, slots=True, kw_only=True)
class PingPolicy:
    """How often to ping, and after how many seconds without any byte a connection is lost."""

    every: float = 5.0
    silence_longest: float = 10.0

    @property
    def tick(self) -> float:
        """How often to look."""
        return min(self.every, self.silence_longest) / 2


@dataclass(frozen=True, slots=True)
class PingState:
    """How many looks in a row found nothing, and how many there were since the last ping.

    Looks are counted, not seconds: while we ourselves were stopped, nobody else was silent.
    """

    silent: int = 0
    unpinged: int = 0


class PingAction(Enum):
    """What a look calls for."""

    WAIT = auto()
    PING = auto()
    GIVE_UP = auto()


def ping_step(watch: PingState, pulse: PingPolicy, *, heard: bool) -> tuple[PingState, PingAction]:
    """Take note whether anything came since the last look, or could not because we did not read.

    Pings go out however much is heard: they are the sign of life of one who has nothing to say.
    """
    silent = 0 if heard else watch.silent + 1
    if silent * pulse.tick >= pulse.silence_longest:
        return PingState(silent, 0), PingAction.GIVE_UP
    unpinged = watch.unpinged + 1
    if unpinged * pulse.tick >= pulse.every:
        return PingState(silent, 0), PingAction.PING
    return PingState(silent, unpinged), PingAction.WAIT
