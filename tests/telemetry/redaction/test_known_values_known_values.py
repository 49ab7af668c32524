"""Known values are hidden, and what only looks like a secret is left alone."""

from __future__ import annotations

import pytest

from holdfast.telemetry.redaction.known_values import KnownRedactor

KEY = "canary/of+a-key=0123456789"
HIDDEN = "[redacted:known]"
LOOKS = "password=swordfish sk-proj-0123456789abcdefABCDEF0123456789"


@pytest.mark.promise("T6")
def test_only_what_is_known_is_hidden() -> None:
    redactor = KnownRedactor([KEY, "short"])

    assert redactor.text(f"{LOOKS} short {KEY}.") == f"{LOOKS} short {HIDDEN}."
    assert redactor.data(f"é {KEY}".encode()) == f"é {HIDDEN}".encode()
    assert redactor.data(b"x%2Fy canary%2Fof%2Ba-key%3D0123456789") == f"x%2Fy {HIDDEN}".encode()


@pytest.mark.parametrize("known", [(), (KEY,), ("short",)])
def test_bytes_that_hold_none_stay_the_very_same(known: tuple[str, ...]) -> None:
    data = f"é \x00 {LOOKS}".encode()

    assert KnownRedactor(known).data(data) is data


def test_what_comes_in_pieces_is_hidden_too() -> None:
    stream = KnownRedactor([KEY]).stream()

    assert stream.feed(f"a {KEY[:9]}") + stream.feed(f"{KEY[9:]} b") + stream.flush() == (
        f"a {HIDDEN} b"
    )
