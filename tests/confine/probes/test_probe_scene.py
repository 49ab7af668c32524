"""The scene of the probes."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from holdfast.confine.probes.attempts import __file__ as attempts
from holdfast.confine.probes.probe import CANARY_NAME, staged


def test_it_is_gone_afterwards_and_so_is_its_neighbour(tmp_path: Path) -> None:
    with staged(tmp_path) as scene:
        assert Path(f"/proc/{scene.neighbour}").exists()
        assert Path(scene.path_socket).is_socket()
        assert Path(scene.workspace, "link").read_text() == "target"
    assert not Path(f"/proc/{scene.neighbour}").exists()


def test_without_a_sandbox_what_is_outside_can_be_harmed(tmp_path: Path) -> None:
    with staged(tmp_path) as scene:
        done = subprocess.run(
            [sys.executable, "-I", attempts, json.dumps(asdict(scene))],
            env={CANARY_NAME: scene.canary},
            capture_output=True,
            text=True,
            timeout=60,
        )
    ended = json.loads(done.stdout)
    assert ended["write_outside"] is None
    assert ended["use_descriptor"] is not None
    assert Path(scene.outside, "target").read_text() == "harmed"
