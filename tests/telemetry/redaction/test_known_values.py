"""Known values are found in every form, first ones first and of those the longest."""

from __future__ import annotations

import pytest

from holdfast.telemetry.redaction.known_values import forms, known_pass
from holdfast.telemetry.redaction.scan import RedactionScan


def test_a_value_is_known_as_encoders_write_it() -> None:
    assert {"a b/c+d-e", "a%20b%2Fc%2Bd-e", "a+b%2Fc%2Bd-e", "YSBiL2MrZC1l"} <= set(
        forms(["a b/c+d-e"])
    )


def test_nothing_to_hide_is_no_pass() -> None:
    assert known_pass(["short"]) is None


@pytest.mark.parametrize(
    ("text", "final", "expected"),
    [
        ("x abcdefgh y", True, RedactionScan("x [redacted:known] y", 12)),
        ("x abcdefghij y", True, RedactionScan("x [redacted:known] y", 14)),
        ("x abcdefghi", False, RedactionScan("x ", 2)),
        ("x abcdefg", False, RedactionScan("x ", 2)),
        ("abcdefg y", False, RedactionScan("abcdefg y", 9)),
        ("[redacted:abcdefgh]", True, RedactionScan("[redacted:abcdefgh]", 19)),
    ],
)
def test_the_longest_value_is_waited_for(text: str, final: bool, expected: RedactionScan) -> None:
    scan = known_pass(["abcdefgh", "abcdefghij"])

    assert scan is not None
    assert scan(text, 0, final) == expected
