"""A keyring is asked in a process of its own; here a small one stands in for the desktop's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.probes.running import run_probe

LIBRARY = """
class Small:
    name = "a small keyring"

def get_keyring():
    return Small()

def get_password(service, name):
    return {("holdfast", "there"): "sk-there"}.get((service, name))
"""


@pytest.fixture(autouse=True)
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "keyring.py").write_text(LIBRARY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def test_what_it_has_is_found_by_name() -> None:
    facts = run_probe("keyrings", "entries", "here,there")["facts"]

    assert facts == {"entries": {"there": "sk-there"}}


def test_who_has_answered_is_said() -> None:
    assert run_probe("keyrings", "usable")["facts"] == {"name": "a small keyring"}
