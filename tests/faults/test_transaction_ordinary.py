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

ACTS = (
    "tests/workbench/transaction/test_atomic_rename.py",
    "tests/workbench/transaction/test_executor.py",
    "tests/workbench/transaction/test_path_state.py",
    "tests/workbench/transaction/test_stage.py",
)


@pytest.mark.long
@pytest.mark.promise("W1", "W5", "W10")
def test_the_tests_of_single_acts_pass_for_an_ordinary_user() -> None:
    complaint = run_tests_as_ordinary_user(*ACTS)

    assert complaint is None, complaint


@pytest.mark.long
@pytest.mark.promise("W1", "W4", "W7")
def test_the_tests_of_transactions_pass_for_an_ordinary_user() -> None:
    complaint = run_tests_as_ordinary_user("tests/workbench/transaction/test_transaction.py")

    assert complaint is None, complaint
