"""Read from a URL where a WebSocket is: a host and a port, or a path."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from holdfast.rpc.failures import AddressInvalid

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
