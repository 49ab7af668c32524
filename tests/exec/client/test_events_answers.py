"""What a server says is read as far as it makes sense, and no further."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.exec import protocol as wire
from holdfast.exec.client.events import read_event, read_page, refused
from holdfast.exec.failures import (
    FileFailed,
    FileMissing,
    ProcessBroken,
    ProcessExists,
    ProcessUnknown,
    SessionAttached,
    SessionExpired,
)
from holdfast.exec.model import Closed, Event, Exited, Output, Page
from holdfast.failures import Failure
from holdfast.rpc.failures import AnswerInvalid, ErrorResponse


@pytest.mark.parametrize(
    ("method", "params", "expected"),
    [
        (
            "process/output",
            b'{"processId":"p","seq":3,"stream":"stdout","chunk":"AP8="}',
            ("p", Output(3, "stdout", b"\0\xff")),
        ),
        (
            "process/exited",
            b'{"processId":"p","seq":4,"exitCode":5,"sandboxDenied":true,"new":1}',
            ("p", Exited(4, 5, sandbox_denied=True)),
        ),
        ("process/closed", b'{"processId":"p","seq":5}', ("p", Closed(5))),
        ("process/output", b'{"processId":"p","seq":3,"stream":"stdout","chunk":"A"}', None),
        ("process/closed", b'{"processId":"p"}', None),
        ("process/closed", b"", None),
        ("fs/missingChanged", b'{"watchId":1}', None),
    ],
)
def test_news_is_read(method: str, params: bytes, expected: tuple[str, Event] | None) -> None:
    assert read_event(method, params) == expected


@given(st.sampled_from(["process/output", "process/exited", "process/closed"]), st.binary())
def test_no_news_makes_us_stumble(method: str, params: bytes) -> None:
    read_event(method, params)


ASKED = wire.ReadParams("p", after_seq=0)
CHUNK = wire.Chunk(1, "stdout", "YQ==")


@pytest.mark.parametrize(
    ("max_bytes", "answer", "expected"),
    [
        (
            None,
            wire.ReadResult((CHUNK,), 2, exited=False, exit_code=None, closed=False),
            Page((Output(1, "stdout", b"a"),), 2, None, closed=False),
        ),
        (
            100,
            wire.ReadResult(
                (CHUNK,), 2, exited=True, exit_code=7, closed=False, first_retained_seq=1
            ),
            Page((Output(1, "stdout", b"a"),), 2, 7, False, first_retained=1, is_whole=False),
        ),
        (
            100,
            wire.ReadResult(
                (CHUNK,), 2, exited=False, exit_code=None, closed=False, has_more=False
            ),
            Page((Output(1, "stdout", b"a"),), 2, None, closed=False),
        ),
        (
            100,
            wire.ReadResult((CHUNK,), 2, exited=False, exit_code=None, closed=False, has_more=True),
            Page((Output(1, "stdout", b"a"),), 2, None, closed=False, is_whole=False),
        ),
        (
            100,
            wire.ReadResult((CHUNK,), 2, exited=True, exit_code=7, closed=False, has_more=False),
            Page((Output(1, "stdout", b"a"),), 2, 7, closed=False, is_whole=False),
        ),
        (
            100,
            wire.ReadResult((), 4, exited=True, exit_code=7, closed=True),
            Page((), 4, 7, closed=True),
        ),
    ],
)
def test_a_page_is_read(max_bytes: int | None, answer: wire.ReadResult, expected: Page) -> None:
    assert read_page(wire.ReadParams("p", max_bytes=max_bytes), answer) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            wire.ReadResult((), 1, exited=False, exit_code=None, closed=False, failure="lost it"),
            ProcessBroken(process="p", reason="lost it"),
        ),
        (
            wire.ReadResult((), 2, exited=True, exit_code=None, closed=False),
            AnswerInvalid(method="process/read", reason="it has exited, and has no exit code"),
        ),
    ],
)
def test_a_page_that_makes_no_sense_is_refused(answer: wire.ReadResult, expected: Failure) -> None:
    with pytest.raises(Failure) as raised:
        read_page(ASKED, answer)

    assert raised.value == expected


@pytest.mark.parametrize(
    ("method", "code", "expected"),
    [
        ("initialize", -32010, SessionAttached(session="x")),
        ("initialize", -32600, SessionExpired(session="x")),
        ("process/start", -32600, ProcessExists(process="x")),
        ("process/read", -32600, ProcessUnknown(process="x")),
        ("fs/readFile", -32004, FileMissing(path="x", reason="why")),
        ("fs/readFile", -32603, FileFailed(path="x", reason="why")),
    ],
)
def test_a_refusal_gets_its_name(method: str, code: int, expected: Failure) -> None:
    error = ErrorResponse(method=method, request=1, error_code=code, error_message="why")

    assert refused(error, subject="x") == expected


@pytest.mark.parametrize("method", ["initialize", "process/start", "environment/info"])
def test_a_refusal_that_we_do_not_know_stays_what_it_is(method: str) -> None:
    error = ErrorResponse(method=method, request=1, error_code=-32603, error_message="why")

    assert refused(error, subject="x") is error
