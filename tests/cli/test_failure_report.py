"""Failures as they leave us."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.app.settings import parse
from holdfast.app.wiring.telemetry import failures_directory
from holdfast.cli.failure_report import keep, readable, reported
from holdfast.cli.failures import UsageWrong
from holdfast.telemetry import read_failures

KEY = "sk-proj-" + "a1B2c3D4" * 8
LEAKY = UsageWrong(problem=f"unknown argument '{KEY}'", read_on="holdfast --help")


@pytest.mark.promise("T6")
def test_no_secret_leaves() -> None:
    assert KEY not in str(reported(LEAKY))
    assert reported(LEAKY)["code"] == "CLI_USAGE_WRONG"
    assert KEY not in readable(f"holdfast: {LEAKY.problem}\n")
    assert readable("holdfast: unknown command 'docto'\n") == "holdfast: unknown command 'docto'\n"


@pytest.mark.promise("T6")
def test_what_is_known_by_its_value_does_not_leave(tmp_path: Path) -> None:
    """A key need not look like one to be hidden, once it is known to be one."""
    script = (
        "from holdfast.cli.failure_report import readable; print(readable('it was quiet-canary'))"
    )
    env = {"HOLDFAST_HOME": str(tmp_path), "OPENAI_API_KEY": "quiet-canary"}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, check=True)

    assert done.stdout == b"it was [redacted:known]\n"


@pytest.mark.promise("T6", "T7")
def test_a_failure_is_kept_without_its_secrets(tmp_path: Path) -> None:
    settings = parse({"HOLDFAST_HOME": str(tmp_path)}, person=tmp_path)
    keep(LEAKY, settings)
    (kept,) = read_failures(failures_directory(settings))

    assert kept.code == "CLI_USAGE_WRONG"
    assert KEY not in str(kept.details)
