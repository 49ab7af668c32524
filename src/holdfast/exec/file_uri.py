"""Convert between file URIs and byte paths; rejects encoded slashes and NUL bytes."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote_from_bytes, unquote_to_bytes

from holdfast.exec.failures import RequestInvalid, RequestUnfit

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_OURS = {"", "localhost"}
# What other writers of file URIs leave as it is.
_PLAIN = "/!$&'()*+,;=:@~-._|[]"


# Most starts of a session are in one directory.
@lru_cache
def path_of(uri: str) -> bytes:
    """Return the absolute path of a file URI; `.` and `..` are resolved lexically."""
    scheme = _SCHEME.match(uri)
    if scheme is None:
        raise RequestInvalid(reason="invalid URI: relative URL without a base")
    if scheme[1].lower() != "file":
        raise RequestInvalid(reason=f"unsupported path URI scheme `{scheme[1].lower()}`")
    rest = uri[scheme.end() :]
    if re.search(r"[?#]", rest):
        raise RequestInvalid(reason="invalid URI: a path URI has neither query nor fragment")
    if rest.startswith("//"):
        host, _, rest = rest[2:].partition("/")
        if host.lower() not in _OURS:
            raise RequestUnfit(reason=f"'{uri}' is invalid on this machine")
    return b"/" + b"/".join(_names(rest))


def uri_of(path: bytes) -> str:
    """Return the file URI of an absolute path."""
    return "file://" + quote_from_bytes(path, safe=_PLAIN)


def _names(path: str) -> list[bytes]:
    names: list[bytes] = []
    for spelled in path.split("/"):
        name = _name(spelled)
        if name == b"..":
            del names[-1:]
        elif name not in {b"", b"."}:
            names.append(name)
    return names


def _name(spelled: str) -> bytes:
    """Decode one path component; an encoded slash or NUL would change the path."""
    try:
        name = unquote_to_bytes(spelled)
    except UnicodeEncodeError as error:
        raise RequestInvalid(reason="invalid URI: it is not valid Unicode") from error
    if b"/" in name or b"\0" in name:
        raise RequestInvalid(reason="invalid URI: a name contains a slash or a NUL")
    return name
