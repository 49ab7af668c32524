"""Whatever was said can be written so that providers accept it."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.agent.providers.text import (
    NOTHING,
    arguments,
    call_id,
    is_object,
    quoted,
    tool_name,
    words,
)

ANY_TEXT = st.text(st.characters())  # with lone surrogates


@settings(deadline=None)
@given(ANY_TEXT)
def test_any_text_becomes_json(text: str) -> None:
    read = json.loads(quoted(text))

    assert read == re.sub("[\ud800-\udfff]", "\ufffd", text)


@pytest.mark.parametrize(
    ("text", "written"), [("", NOTHING), (" \n", NOTHING), ("a", "a"), (" a ", " a ")]
)
def test_nothing_is_said_in_words(text: str, written: str) -> None:
    assert json.loads(words(text)) == written


@settings(deadline=None)
@given(ANY_TEXT)
def test_the_name_of_a_call_fits_everywhere(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,40}", call_id(name))
    assert call_id(call_id(name)) == call_id(name)


@settings(deadline=None)
@given(ANY_TEXT, ANY_TEXT)
def test_calls_keep_different_names(one: str, other: str) -> None:
    assert (call_id(one) == call_id(other)) == (one == other)


@settings(deadline=None)
@given(ANY_TEXT)
def test_the_name_of_a_tool_fits_everywhere(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool_name(name))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', {"a": 1}),
        ("{}", {}),
        ("", {"malformed_arguments": ""}),
        ('{"a": ', {"malformed_arguments": '{"a": '}),
        ("[1]", {"malformed_arguments": "[1]"}),
        ("null", {"malformed_arguments": "null"}),
        ("[" * 100_000, {"malformed_arguments": "[" * 100_000}),
    ],
)
def test_arguments_are_always_an_object(text: str, expected: object) -> None:
    assert json.loads(arguments(text)) == expected


@settings(deadline=None)
@given(ANY_TEXT)
def test_any_arguments_become_an_object(text: str) -> None:
    assert isinstance(json.loads(arguments(text)), dict)
    assert not is_object(text) or json.loads(arguments(text)) == json.loads(text)
