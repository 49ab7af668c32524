"""Whoever may reach one host gets out of a sandbox in no other way than by that host."""

from __future__ import annotations

import json
import os
import socketserver
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from holdfast.confine.probes import attempts
from holdfast.confine.probes.attempts import ATTEMPTS, Scene
from holdfast.confine.probes.probe import (
    CANARY_NAME,
    attempted,
    readable_for_python,
    staged,
    trying,
)
from tests.cli.sandboxes import needs_sandbox, shut
from tests.parts.ordinary_user import run_tests_as_ordinary_user

# What a probe cannot know: whether one who asks the proxy for somebody else gets there.
INSIDE = """
import json, subprocess, sys, urllib.error, urllib.request
def asked(port):
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60).read().decode()
    except urllib.error.HTTPError as error:
        return error.code
tried = subprocess.run([sys.executable, "-I", *sys.argv[1:3]], capture_output=True, check=True)
found = {"probes": json.loads(tried.stdout), "asked": [asked(port) for port in sys.argv[3:]]}
print(json.dumps(found))
"""


class Welcome(socketserver.StreamRequestHandler):
    """Answers everyone, by HTTP."""

    def handle(self) -> None:
        while self.rfile.readline().strip():
            pass
        self.wfile.write(
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 7\r\n\r\nwelcome"
        )


@pytest.fixture
def host() -> Iterator[int]:
    """The port of the one host that may be reached."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Welcome) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with staged(tmp_path) as made:
        yield made


def test_every_way_out_but_the_host_is_closed(scene: Scene, host: int, tmp_path: Path) -> None:
    needs_sandbox()
    seen = [word for path in readable_for_python() for word in ("--read", path)]
    words = [sys.executable, "-I", "-c", INSIDE, attempts.__file__, json.dumps(asdict(scene))]
    done = shut(
        *("--write", scene.workspace, *seen, "--net", f"127.0.0.1:{host}", "--json", "--"),
        *(*words, str(host), str(scene.tcp)),
        home=tmp_path / "home",
        cwd=Path(scene.workspace),
        PROBE_API_KEY=scene.canary,
        HOME="/nonexistent",
    )
    assert CANARY_NAME == "PROBE_API_KEY"
    assert done.returncode == 0, done.stderr
    inside, report = json.loads(done.stdout), json.loads(done.stderr)

    assert inside["asked"] == ["welcome", 403]
    assert [each for each in inside["probes"].items() if each[1] is None] == []
    assert inside["probes"].keys() == {each.__name__ for each in ATTEMPTS}
    assert [each["host"] for each in report["reached"]] == [f"127.0.0.1:{host}"]
    assert [each["host"] for each in report["blocked"]] == [f"127.0.0.1:{scene.tcp}"]


def test_each_way_is_open_without_a_sandbox(scene: Scene) -> None:
    closed = {name: why for name, why in attempted(trying(scene), scene).items() if why}
    assert closed.keys() <= {"call_as_another_architecture"}, closed


@pytest.mark.skipif(os.geteuid() != 0, reason="whoever is not root has run them all already")
def test_all_of_this_holds_for_an_ordinary_user_too() -> None:
    assert run_tests_as_ordinary_user(__file__) is None
