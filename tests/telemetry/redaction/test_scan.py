"""The pieces from which passes are built."""

from __future__ import annotations

import pytest

from holdfast.telemetry.redaction.scan import RedactionScan, Spans, inside_placeholder


def test_spans_keep_what_is_not_hidden() -> None:
    spans = Spans("0123456789", 2)
    spans.replace(4, 6, "aws")

    assert spans.until(8) == RedactionScan("23[redacted:aws]67", 8)
    assert spans.until(1) == RedactionScan("23[redacted:aws]", 6)


@pytest.mark.parametrize(
    ("at", "expected"), [(0, False), (2, True), (12, True), (15, True), (16, False), (18, False)]
)
def test_a_placeholder_is_recognised_from_inside(at: int, expected: bool) -> None:
    assert inside_placeholder("x [redacted:aws] y", at) is expected
