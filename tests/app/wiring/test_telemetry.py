"""Telemetry is configured by the settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.app.failures import SettingInvalid
from holdfast.app.settings import parse
from holdfast.app.wiring.telemetry import failures_directory, open_telemetry
from holdfast.telemetry import read_failures

WRONG = SettingInvalid(variable="HOLDFAST_DEBUG", value="perhaps", allowed="a claim")


@pytest.mark.promise("T7")
def test_a_failure_is_kept_in_the_state_directory(tmp_path: Path) -> None:
    settings = parse({"HOLDFAST_HOME": str(tmp_path)}, person=tmp_path)
    open_telemetry(settings).record(WRONG)
    (kept,) = read_failures(failures_directory(settings))

    assert failures_directory(settings) == tmp_path / "state" / "failures"
    assert (kept.code, kept.details) == (WRONG.code, WRONG.details)


def test_a_state_directory_that_cannot_be_created_is_ignored(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    settings = parse({"HOLDFAST_HOME": str(file)}, person=tmp_path)

    open_telemetry(settings).record(WRONG)
