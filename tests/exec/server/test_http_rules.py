"""What of a web request is valid, and what it may carry."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from holdfast.exec.failures import RequestInvalid
from holdfast.exec.server.http_rules import (
    HttpRequest,
    checked_headers,
    checked_method,
    checked_url,
    head_of,
    redirected,
)

OWN = {"MINE": "secret", "OPENAI_API_KEY": "k"}


def request(url: str, method: str = "GET", body: bytes = b"") -> HttpRequest:
    headers = (("Authorization", "Bearer x"), ("X-A", "1"))
    return HttpRequest(method, urlsplit(url), headers, body)


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
    assert redirected(first, 303, "/y") == HttpRequest(
        "GET", urlsplit("http://a/y"), first.headers, b""
    )
    assert redirected(first, 307, "http://b/y") == HttpRequest(
        "POST", urlsplit("http://b/y"), (("X-A", "1"),), b"body"
    )
    with pytest.raises(RequestInvalid):
        redirected(first, 302, "file:///etc/passwd")


def test_a_header_from_a_variable_of_ours_stays_with_its_origin() -> None:
    first = replace(request("http://a/x"), secret=frozenset({"x-a"}))
    onward = redirected(first, 307, "http://b/y")

    assert onward is not None
    assert [name for name, _ in onward.headers] == ["Authorization"]
    again = redirected(onward, 307, "http://c/")
    assert again == replace(onward, url=urlsplit("http://c/"))


@pytest.mark.parametrize(
    ("url", "target", "host"),
    [
        ("http://h/ä/日?本=%41", b"/%C3%A4/%E6%97%A5?%E6%9C%AC=%41", b"h"),
        ("http://bücher.example:81/", b"/", b"xn--bcher-kva.example:81"),
        ("http://[::1]:81/[x]{y}", b"/[x]{y}", b"[::1]:81"),
    ],
)
def test_an_address_is_written_in_the_letters_of_http(url: str, target: bytes, host: bytes) -> None:
    head = head_of(HttpRequest("GET", checked_url(url), (), b""))

    assert head.split(b"\r\n")[:2] == [b"GET " + target + b" HTTP/1.1", b"Host: " + host]


def test_a_name_that_no_host_can_have_is_refused() -> None:
    with pytest.raises(RequestInvalid, match="too long"):
        checked_url("http://" + "ä" * 99)


def test_a_redirect_means_the_bytes_that_came() -> None:
    onward = redirected(request("http://a/x"), 302, "/ä b".encode().decode("latin-1"))

    assert onward is not None
    assert onward.url.geturl() == "http://a/%C3%A4%20b"


def test_a_request_is_written_as_http() -> None:
    assert head_of(request("http://u:p@a:81/x?y=1", "PUT", b"abc")) == (
        b"PUT /x?y=1 HTTP/1.1\r\nHost: a:81\r\nConnection: close\r\nAuthorization: Bearer x\r\n"
        b"X-A: 1\r\nAccept: */*\r\nContent-Length: 3\r\n\r\n"
    )
