"""File URIs: every path has one, and no spelling leads around a name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.exec.failures import RequestInvalid, RequestUnfit
from holdfast.exec.file_uri import path_of, uri_of
from holdfast.failures import Failure

NAMES = st.binary(min_size=1, max_size=20).filter(
    lambda name: name not in {b".", b".."} and not {0, ord("/")} & set(name)
)


@given(st.lists(NAMES, max_size=6))
def test_every_path_is_found_again_in_its_uri(names: list[bytes]) -> None:
    path = b"/" + b"/".join(names)

    assert path_of(uri_of(path)) == path


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///tmp/a%20b", b"/tmp/a b"),
        ("file:///tmp/%ff", b"/tmp/\xff"),
        ("file:///tmp/é", b"/tmp/\xc3\xa9"),
        ("file:///", b"/"),
        ("file:///tmp/", b"/tmp"),
        ("file:///tmp//x", b"/tmp/x"),
        ("file://localhost/x", b"/x"),
        ("FILE:///x", b"/x"),
        ("file:/x", b"/x"),
        ("file:///a/./b/../c", b"/a/c"),
        ("file:///../../etc", b"/etc"),
        ("file:///a/%2e%2e/b", b"/b"),
        ("file:///a/100%", b"/a/100%"),
    ],
)
def test_a_uri_names_one_path(uri: str, path: bytes) -> None:
    assert path_of(uri) == path


@pytest.mark.parametrize(
    ("uri", "failure"),
    [
        ("/tmp", RequestInvalid(reason="invalid URI: relative URL without a base")),
        ("", RequestInvalid(reason="invalid URI: relative URL without a base")),
        ("http://x/y", RequestInvalid(reason="unsupported path URI scheme `http`")),
        ("file://host/y", RequestUnfit(reason="'file://host/y' is invalid on this machine")),
        (
            "file:///a%2Fb",
            RequestInvalid(reason="invalid URI: a name contains a slash or a NUL"),
        ),
        (
            "file:///a%00b",
            RequestInvalid(reason="invalid URI: a name contains a slash or a NUL"),
        ),
        (
            "file:///a?b",
            RequestInvalid(reason="invalid URI: a path URI has neither query nor fragment"),
        ),
        ("file:///\ud800", RequestInvalid(reason="invalid URI: it is not valid Unicode")),
    ],
)
def test_what_names_no_path_is_refused(uri: str, failure: Failure) -> None:
    with pytest.raises(type(failure)) as refused:
        path_of(uri)

    assert refused.value == failure
