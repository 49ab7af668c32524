"""Keys are found by their form, and words are not."""

from __future__ import annotations

import pytest

from holdfast.telemetry.redaction.scan import RedactionScan
from holdfast.telemetry.redaction.tokens import scan_tokens

KEY = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"x {KEY} y", "x [redacted:github] y"),
        (f"x\\n{KEY}\\ny", "x\\n[redacted:github]\\ny"),
        (f"a=%3D{KEY}%26b", "a=%3D[redacted:github]%26b"),
        (f"name-{KEY}", "name-[redacted:github]"),
        (f"{KEY}/{KEY}", "[redacted:github]/[redacted:github]"),
        ("ghp_tooshort and ghp_", "ghp_tooshort and ghp_"),
        ("eyJhbGciOiJub25lIn0tooshort.x", "eyJhbGciOiJub25lIn0tooshort.x"),
        ("a" * 5000 + "0123456789abcdef" * 20, "a" * 5000 + "0123456789abcdef" * 20),
    ],
)
def test_a_key_is_hidden(text: str, expected: str) -> None:
    assert scan_tokens(text, 0, True).out == expected


def test_the_last_word_is_held_back_until_it_ends() -> None:
    assert scan_tokens(f"one two {KEY}", 0, False) == RedactionScan("one two ", 8)


def test_a_word_that_does_not_end_is_decided_in_parts() -> None:
    scan = scan_tokens("x " + "ab" * 5000, 0, False)

    assert (len(scan.out), scan.keep, scan.rest) == (10_002 - 4096, 10_002 - 4096, None)
