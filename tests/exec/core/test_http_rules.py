"""What of a web request is valid, and what it may carry."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from holdfast.exec.core.http_rules import (
    WebRequest,
    checked_headers,
    checked_method,
    checked_url,
    head_of,
    redirected,
)
from holdfast.exec.failures import RequestInvalid

OWN = {"MINE": "secret", "OPENAI_API_KEY": "k"}


def request(url: str, method: str = "GET", body: bytes = b"") -> WebRequest:
    headers = (("Authorization", "Bearer x"), ("X-A", "1"))
    return WebRequest(method, urlsplit(url), headers, body)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("nope", "http/request url is invalid: relative URL without a base"),
        ("file:///x", "http/request only supports http and https URLs, got file"),
        ("http:///x", "http/request url is invalid: it names no host"),
        ("http://a/b c", "http/request url is invalid: it names no host"),
        ("http://a:99999/", "http/request url is invalid: Port out of range 0-65535"),
    ],
)
def test_an_address_that_is_none_is_refused(url: str, reason: str) -> None:
    with pytest.raises(RequestInvalid) as refused:
        checked_url(url)

    assert refused.value == RequestInvalid(reason=reason)


@pytest.mark.parametrize("method", ["", "G T", "GET\r\n"])
def test_a_method_that_is_none_is_refused(method: str) -> None:
    with pytest.raises(RequestInvalid):
        checked_method(method)


def test_a_variable_of_ours_is_appended_to_a_header() -> None:
    headers = [("Authorization", "Bearer ", "MINE"), ("X", "1", None), ("Host", "evil", None)]

    assert checked_headers(headers, OWN) == (("Authorization", "Bearer secret"), ("X", "1"))


@pytest.mark.parametrize(
    "header",
    [
        ("a b", "x", None),
        ("a", "x\r\ny: z", None),
        ("a", "", "OPENAI_API_KEY"),
        ("a", "", "AWS_SECRET_ACCESS_KEY"),
        ("a", "", "MISSING"),
    ],
)
def test_a_header_that_must_not_be_sent_is_refused(header: tuple[str, str, str | None]) -> None:
    with pytest.raises(RequestInvalid):
        checked_headers([header], OWN)


def test_a_redirect_keeps_secrets_with_their_origin() -> None:
    first = request("http://a/x", "POST", b"body")

    assert redirected(first, 200, "/y") is None
    assert redirected(first, 302, None) is None
    assert redirected(first, 303, "/y") == WebRequest(
        "GET", urlsplit("http://a/y"), first.headers, b""
    )
    assert redirected(first, 307, "http://b/y") == WebRequest(
        "POST", urlsplit("http://b/y"), (("X-A", "1"),), b"body"
    )
    with pytest.raises(RequestInvalid):
        redirected(first, 302, "file:///etc/passwd")


def test_a_request_is_written_as_http() -> None:
    assert head_of(request("http://u:p@a:81/x?y=1", "PUT", b"abc")) == (
        b"PUT /x?y=1 HTTP/1.1\r\nHost: a:81\r\nConnection: close\r\nAuthorization: Bearer x\r\n"
        b"X-A: 1\r\nAccept: */*\r\nContent-Length: 3\r\n\r\n"
    )
