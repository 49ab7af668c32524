"""Any bytes have a text form that JSON and terminals accept and that reads back exactly."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.nouns.text import escaped, shown, unescaped


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"plain.py", "plain.py"),
        ("größe 日本 🎉".encode(), "größe 日本 🎉"),
        (b"back\\slash", "back\\\\slash"),
        (b"\\x41", "\\\\x41"),
        (b"latin-\xe9", "latin-\\xe9"),
        (b"cut-\xf0\x9f\x8e", "cut-\\xf0\\x9f\\x8e"),
        (b"\x1b[2J\n\x7f", "\\x1b[2J\\x0a\\x7f"),
        ("\u009b31m".encode(), "\\xc2\\x9b31m"),
        ("a\u202ecod.exe".encode(), "a\\xe2\\x80\\xaecod.exe"),
        ("zero\u200bwidth".encode(), "zero\\xe2\\x80\\x8bwidth"),
        ("line\u2028break".encode(), "line\\xe2\\x80\\xa8break"),
        (b"\xed\xa0\x80", "\\xed\\xa0\\x80"),
        (b"", ""),
    ],
)
def test_text_form(raw: bytes, text: str) -> None:
    assert escaped(raw) == text
    assert unescaped(text) == raw


@given(st.binary())
@example("é".encode()[:1] + "é".encode()[1:])
def test_any_bytes_come_back_through_json(raw: bytes) -> None:
    assert unescaped(json.loads(json.dumps(escaped(raw)))) == raw


@given(st.binary())
def test_the_text_is_valid_and_harmless(raw: bytes) -> None:
    text = escaped(raw)

    text.encode("utf-8")
    assert {unicodedata.category(c) for c in text}.isdisjoint({"Cc", "Cf", "Cs", "Zl", "Zp"})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("\\", "a backslash in it begins no escape"),
        ("a\\q", "a backslash in it begins no escape"),
        ("\\x4", "a backslash in it begins no escape"),
        ("\\xFF", "a backslash in it begins no escape"),
        ("\\\n", "a backslash in it begins no escape"),
        ("\ud800", "it is not valid Unicode"),
    ],
)
def test_what_nobody_wrote_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{reason}$"):
        unescaped(text)


@given(st.text(max_size=60))
def test_any_text_is_taken_or_refused(text: str) -> None:
    try:
        raw = unescaped(text)
    except ValueError:
        return
    assert unescaped(escaped(raw)) == raw


def test_what_is_shown_is_harmless_and_short() -> None:
    assert shown("\ud800\x1b") == "\\\\ud800\\x1b"
    assert shown(b"a" * 201) == "a" * 200 + "…"
