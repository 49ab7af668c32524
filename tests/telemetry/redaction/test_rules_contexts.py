"""A pass by surroundings holds back only what is undecided."""

from __future__ import annotations

import pytest

from holdfast.telemetry.redaction.rules import scan_contexts
from holdfast.telemetry.redaction.scan import RedactionScan


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("some ordinary words here", RedactionScan("some ordinar", 12)),
        ("say password=abc1", RedactionScan("say ", 4)),
        (
            "say password=abc1 and more words",
            RedactionScan("say password=[redacted:secret] an", 20),
        ),
        ("say the token is good for a day", RedactionScan("say the token is go", 19)),
    ],
)
def test_what_is_decided_is_passed_on(text: str, expected: RedactionScan) -> None:
    assert scan_contexts(text, 0, False) == expected


def test_a_value_that_does_not_end_is_hidden_as_it_comes() -> None:
    scan = scan_contexts("password=" + "a1" * 3000, 0, False)

    assert (scan.out, scan.keep) == ("password=[redacted:secret]", 6009)
    assert scan.rest is not None


def test_a_name_that_was_hidden_still_speaks_of_what_follows() -> None:
    scan = scan_contexts("SECRET=a1b2(secret_key: 'q7Zk2mPx' end", 0, True)

    assert scan.out == "SECRET=[redacted:secret] '[redacted:secret]' end"
