"""Nested values lose their secrets, by form and by name, and stay bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.telemetry.redaction.redaction import Redactor
from holdfast.telemetry.redaction.values import CUT, DEPTH_MAX, ITEMS_MAX, TEXT_MAX, ValueRedactor
from holdfast.telemetry.testing import canaries

REDACT = ValueRedactor(Redactor().text)
HIDDEN = "[redacted:secret]"


@pytest.mark.promise("T6")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"password": "x"}, {"password": HIDDEN}),
        ({"password": 1234}, {"password": HIDDEN}),
        ({"password": None}, {"password": None}),
        ({"PWD": "/home/ann", "OLDPWD": "/"}, {"PWD": "/home/ann", "OLDPWD": "/"}),
        ({"PWD": "hunter2"}, {"PWD": HIDDEN}),
        ({"apiKey": "abc123def456"}, {"apiKey": HIDDEN}),
        ({"tokens": 4096, "max_tokens": 1}, {"tokens": 4096, "max_tokens": 1}),
        (
            {"credentials": {"user": "u", "pin": [1]}},
            {"credentials": {"user": HIDDEN, "pin": [HIDDEN]}},
        ),
        (("a", b"b", 1.5, True), ["a", "b", 1.5, True]),
        (["run", "--password", "x", "y"], ["run", "--password", HIDDEN, "y"]),
        (["--api-key", "abc123def456"], ["--api-key", HIDDEN]),
        (["run", "--token-file", "/a", "--x"], ["run", "--token-file", "/a", "--x"]),
        ([["X-Api-Key", "abc123def456"]], [["X-Api-Key", HIDDEN]]),
        (["Authorization", "abc123def456"], ["Authorization", HIDDEN]),
        (("password", "username"), ["password", "username"]),
        (
            [{"name": "DB_PASSWORD", "value": "x"}, {"name": "HOME", "value": "x"}],
            [{"name": "DB_PASSWORD", "value": HIDDEN}, {"name": "HOME", "value": "x"}],
        ),
        ({"name": "DB_PASSWORD", "values": "x"}, {"name": "DB_PASSWORD", "values": "x"}),
        ("Bearer abcdef123456", "Bearer [redacted:bearer]"),
        (
            {"Authorization: Bearer abc12345": 1},
            {"Authorization: Bearer [redacted:authorization]": 1},
        ),
        (
            {"k": "[redacted:aws]", "secret": "[redacted:aws]"},
            {"k": "[redacted:aws]", "secret": "[redacted:aws]"},
        ),
    ],
)
def test_secrets_leave_a_value(value: object, expected: object) -> None:
    assert REDACT(value) == expected


def test_depth_and_size_are_bounded() -> None:
    deep: object = "end"
    for _ in range(DEPTH_MAX + 5):
        deep = [deep]

    assert str(REDACT(deep)).count("[") == DEPTH_MAX + 2
    assert REDACT("a " * TEXT_MAX) == "a " * (TEXT_MAX // 2) + CUT
    wide = REDACT(list(range(ITEMS_MAX * 2)))
    assert isinstance(wide, list)
    assert len(wide) <= ITEMS_MAX


NESTED = st.recursive(
    st.sampled_from([text for _, text, _ in canaries(5)]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(NESTED)
def test_no_canary_survives_in_any_nesting(value: object) -> None:
    written = repr(REDACT(value))

    assert [secret for _, _, secret in canaries(5) if secret in written] == []
