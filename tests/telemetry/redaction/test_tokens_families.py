"""The table of families is sound: every row is reachable and means what it says."""

from __future__ import annotations

import re

import pytest

from holdfast.telemetry.redaction.redaction import Redactor
from holdfast.telemetry.redaction.scan import PLACEHOLDER, placeholder
from holdfast.telemetry.redaction.tokens import FAMILIES, TokenFamily
from holdfast.telemetry.testing import canaries


def test_there_are_more_than_twenty_families() -> None:
    assert len({family.label for family in FAMILIES}) > 20


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.head[:24])
def test_a_row_compiles_and_its_label_fits_a_placeholder(family: TokenFamily) -> None:
    re.compile(family.head + family.needs + family.rest)

    assert PLACEHOLDER.fullmatch(placeholder(family.label))


@pytest.mark.promise("T6")
def test_a_key_is_called_by_the_name_of_its_family() -> None:
    labels = {family.label for family in FAMILIES}
    misnamed = [
        (family, shown)
        for seed in range(20)
        for family, text, secret in canaries(seed)
        if family in labels
        for shown in [Redactor().text(f"x {text} y")]
        if f"[redacted:{family}]" not in shown or secret in shown
    ]

    assert misnamed == []
