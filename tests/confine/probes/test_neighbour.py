"""The process that lives beside a sandbox."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

from holdfast.confine.probes.attempts import reach_abstract_socket, reach_tcp, reach_udp
from holdfast.confine.probes.neighbour import SIGNALLED
from holdfast.confine.probes.probe import staged


def test_it_answers_everyone_and_notices_signals(tmp_path: Path) -> None:
    with staged(tmp_path) as scene:
        for reach in (reach_tcp, reach_udp, reach_abstract_socket):
            reach(scene)
        os.kill(scene.neighbour, signal.SIGUSR1)
        with socket.create_connection(("127.0.0.1", scene.tcp), timeout=60) as caller:
            caller.send(b"after the signal")
            assert caller.recv(64) == b"after the signal"
        assert Path(scene.outside, SIGNALLED).exists()
