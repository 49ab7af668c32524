"""Whatever is true of transactions for root is true for an ordinary user."""

from __future__ import annotations

import os
import sys

import pytest

from tests.parts.ordinary_user import run_tests_as_ordinary_user

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces"),
    pytest.mark.skipif(os.geteuid() != 0, reason="these tests are run by an ordinary user already"),
]

QUICK = ("acting", "looking", "renaming", "staging")


def complaint_of(*names: str) -> str | None:
    return run_tests_as_ordinary_user(*(f"tests/workbench/test_{name}.py" for name in names))


@pytest.mark.long
@pytest.mark.promise("W1", "W5", "W10")
def test_the_tests_of_single_acts_pass_for_an_ordinary_user() -> None:
    complaint = complaint_of(*QUICK)

    assert complaint is None, complaint


@pytest.mark.long
@pytest.mark.promise("W1", "W4", "W7")
def test_the_tests_of_transactions_pass_for_an_ordinary_user() -> None:
    complaint = complaint_of("transaction")

    assert complaint is None, complaint
