"""Listen and be heard."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.app.probes.network import loopback
from tests.app.probes.running import run_probe


def test_loopback_answers() -> None:
    assert loopback("") == {"answered": True}


def test_a_unix_socket_answers_however_long_the_path(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)

    assert run_probe("network", "unix", deep) == {"facts": {"answered": True}}
    assert os.listdir(deep) == []
