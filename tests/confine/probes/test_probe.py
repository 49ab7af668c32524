"""Every way out is open without a sandbox, and closed in one."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

from holdfast.confine.policy import Strength
from holdfast.confine.probes.attempts import ATTEMPTS
from holdfast.confine.probes.probe import ProbeVerdict, findings, probe
from holdfast.confine.sandbox.preflight import preflight
from tests.parts.ordinary_user import run_tests_as_ordinary_user

NAMES = [attempt.__name__ for attempt in ATTEMPTS]


@pytest.mark.skipif(
    preflight().strength is not Strength.FULL,
    reason=f"no full sandbox on this machine: {'; '.join(preflight().reasons)}",
)
def test_all_twenty_four_are_contained(tmp_path: Path) -> None:
    expected = dict.fromkeys(NAMES, ProbeVerdict.CONTAINED)
    if platform.machine() != "x86_64":
        expected["call_as_another_architecture"] = ProbeVerdict.NOT_APPLICABLE
    found = probe(state=tmp_path)
    assert {each.name: each.verdict for each in found} == expected
    assert len(found) == 24


@pytest.mark.skipif(os.geteuid() != 0, reason="whoever is not root has run them all already")
def test_all_of_this_holds_for_an_ordinary_user_too() -> None:
    assert run_tests_as_ordinary_user(__file__) is None


def test_a_way_that_is_closed_anyhow_proves_nothing() -> None:
    open_everywhere = dict.fromkeys(NAMES, None)
    closed = dict.fromkeys(NAMES, "refused")
    for without, within, verdict in (
        (open_everywhere, open_everywhere, ProbeVerdict.ESCAPED),
        (closed, open_everywhere, ProbeVerdict.ESCAPED),
        (open_everywhere, closed, ProbeVerdict.CONTAINED),
        (closed, closed, ProbeVerdict.NOT_APPLICABLE),
    ):
        assert {each.verdict for each in findings({**without}, {**within})} == {verdict}


def test_each_says_what_it_tries() -> None:
    found = findings(dict.fromkeys(NAMES), dict.fromkeys(NAMES))
    assert all(each.tries.endswith(".") and len(each.tries) < 90 for each in found)
