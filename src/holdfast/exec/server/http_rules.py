"""Decide what of a web request is valid, and which of our variables it may carry."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from holdfast.exec.failures import RequestInvalid

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_OURS = {"connection", "content-length", "host", "transfer-encoding"}
_DENIED = re.compile(r"OPENAI_.*|CODEX_.*|HOLDFAST_.*|AWS_.*|AZURE_.*|GOOGLE_.*|ANTHROPIC_.*")
# Of an address; the rest is percent-encoded.
_AS_IT_IS = "".join(map(chr, range(0x21, 0x7F)))
_STATUS = re.compile(r"HTTP/1\.[01] ([1-5][0-9]{2})(?: .*)?")
_LENGTH = re.compile(r"[0-9]{1,18}")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[\t ]*(?:;[^\r\n]*)?\r\n")
_BODILESS = {204, 304}
CHUNKED = "chunked"
_REDIRECTS = {301, 302, 303, 307, 308}
SECRET_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request that may be made; `secret` are headers, in small letters, for its origin alone."""

    method: str
    url: SplitResult
    headers: tuple[tuple[str, str], ...]
    body: bytes
    secret: frozenset[str] = SECRET_HEADERS


def checked_url(url: str) -> SplitResult:
    """An address on the web, in the letters that HTTP has; anything else is refused."""
    try:
        parts = _in_plain_letters(urlsplit(url))
        port = parts.port
    except ValueError as error:
        raise RequestInvalid(reason=f"http/request url is invalid: {error}") from error
    if not parts.scheme:
        raise RequestInvalid(reason="http/request url is invalid: relative URL without a base")
    if parts.scheme not in {"http", "https"}:
        reason = f"http/request only supports http and https URLs, got {parts.scheme}"
        raise RequestInvalid(reason=reason)
    if not parts.hostname or port == 0 or not url.isprintable() or " " in url:
        raise RequestInvalid(reason="http/request url is invalid: it names no host")
    return parts


def checked_method(method: str) -> str:
    """A method as HTTP writes it."""
    if not _TOKEN.fullmatch(method):
        raise RequestInvalid(reason="http/request method is invalid: invalid HTTP method")
    return method


def checked_headers(
    headers: Sequence[tuple[str, str, str | None]], own: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """Headers as they may be sent; a variable of ours is appended where one is named."""
    chosen: list[tuple[str, str]] = []
    for name, given, variable in headers:
        value = given
        if not _TOKEN.fullmatch(name):
            reason = "http/request header name is invalid: invalid HTTP header name"
            raise RequestInvalid(reason=reason)
        if variable is not None:
            value += _variable(name, variable, own)
        if not _VALUE.fullmatch(value):
            raise RequestInvalid(reason=f"http/request header {name} has an invalid value")
        if name.lower() not in _OURS:
            chosen.append((name, value))
    return tuple(chosen)


def redirected(request: HttpRequest, status: int, location: str | None) -> HttpRequest | None:
    """The request that an answer sends us on to; None if it is an answer to keep.

    Secrets stay with the origin that they were meant for.
    """
    if status not in _REDIRECTS or location is None:
        return None
    # Header bytes outside of ASCII are passed through as latin-1.
    onward = quote(location.encode("latin-1", "replace"), safe=_AS_IT_IS)
    url = checked_url(urljoin(request.url.geturl(), onward))
    changes = status == 303 or (status in {301, 302} and request.method == "POST")
    method = "GET" if changes and request.method != "HEAD" else request.method
    body = b"" if changes else request.body
    headers = request.headers
    if (url.scheme, url.netloc) != (request.url.scheme, request.url.netloc):
        headers = tuple(each for each in headers if each[0].lower() not in request.secret)
    return HttpRequest(method, url, headers, body, request.secret)


def status_of(line: str) -> int:
    """The status that the first line of an answer gives; raises `ValueError` if it is not valid."""
    found = _STATUS.fullmatch(line)
    if found is None:
        raise ValueError("it does not answer in HTTP/1.1")
    return int(found[1])


def body_length(
    status: int, headers: Sequence[tuple[str, str]], *, method: str
) -> int | str | None:
    """How long the body of an answer is: so many bytes, `CHUNKED`, or (None) up to the end.

    RFC 9112, 6.3, strictly: raises `ValueError` where two readers could disagree, that is for a
    length that is not digits alone, lengths that differ, and a length beside a transfer coding.
    """
    codings = _words(headers, "transfer-encoding")
    lengths = set(_words(headers, "content-length"))
    if method == "HEAD" or status in _BODILESS:
        return 0
    if codings and lengths:
        raise ValueError("the answer has both Transfer-Encoding and Content-Length")
    if codings:
        if [each.lower() for each in codings] != [CHUNKED]:
            raise ValueError("the answer has a transfer coding that was not asked for")
        return CHUNKED
    if len(lengths) > 1 or not all(map(_LENGTH.fullmatch, lengths)):
        raise ValueError("the answer has an invalid Content-Length")
    return int(lengths.pop()) if lengths else None


def chunk_size(line: bytes) -> int:
    """The size that the first line of a chunk gives; raises `ValueError` if it is not valid."""
    found = _CHUNK_SIZE.fullmatch(line)
    if found is None:
        raise ValueError("the answer has an invalid chunk size")
    return int(found[1], 16)


def head_of(request: HttpRequest) -> bytes:
    """The first lines of a request, as HTTP writes them."""
    path = request.url.path or "/"
    target = f"{path}?{request.url.query}" if request.url.query else path
    host = request.url.netloc.rpartition("@")[2]
    lines = [f"{request.method} {target} HTTP/1.1", f"Host: {host}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in request.headers]
    if not any(name.lower() == "accept" for name, _ in request.headers):
        lines.append("Accept: */*")
    if request.body or request.method in {"POST", "PUT", "PATCH"}:
        lines.append(f"Content-Length: {len(request.body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _in_plain_letters(url: SplitResult) -> SplitResult:
    """The same address as all who speak HTTP write it; raises `ValueError` if there is none."""
    user, at, host = url.netloc.rpartition("@")
    if not host.isascii():
        host = host.encode("idna").decode("ascii")
    path, query = quote(url.path, safe=_AS_IT_IS), quote(url.query, safe=_AS_IT_IS)
    return url._replace(netloc=f"{user}{at}{host}", path=path, query=query)


def _words(headers: Sequence[tuple[str, str]], name: str) -> list[str]:
    """All members of a header that is a list, also where it stands in several lines."""
    values = [value for each, value in headers if each.lower() == name]
    return [word.strip("\t ") for value in values for word in value.split(",")]


def _variable(header: str, variable: str, own: Mapping[str, str]) -> str:
    if _DENIED.fullmatch(variable):
        reason = f"http/request header {header} cannot use executor environment variable {variable}"
        raise RequestInvalid(reason=reason)
    if variable not in own:
        reason = f"http/request header {header} requires executor environment variable {variable}"
        raise RequestInvalid(reason=reason)
    return own[variable]
