"""What an editor chose is kept with the session; its servers where only their owner reads them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from holdfast.acp.model import EditorServer, EditorState
from holdfast.app.sessions import KeptSession, Sessions
from holdfast.app.wiring.editor import read_state, servers_file, write_servers, write_state
from tests.cli.workbenches import Bench, at_bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    with at_bench() as made:
        yield made


def begun(bench: Bench) -> KeptSession:
    return Sessions(bench.settings).make("/p", "draft_1", "native", title="", options={})


def test_a_choice_is_kept(bench: Bench) -> None:
    session, state = begun(bench), EditorState("in-place", "a/b", "high")
    assert read_state(bench.settings, session) == EditorState()

    write_state(bench.settings, session, state)
    assert read_state(bench.settings, session) == state


@pytest.mark.parametrize("damaged", [b"", b"[]", b'{"mode": 1}', b'{"mode": "ask"}', b"\xff"])
def test_a_damaged_file_is_no_choice(bench: Bench, damaged: bytes) -> None:
    session = begun(bench)
    (Sessions(bench.settings).directory(session) / "editor.json").write_bytes(damaged)

    assert read_state(bench.settings, session) == EditorState()


def test_servers_are_private_and_go_when_there_are_none(bench: Bench) -> None:
    servers = (
        EditorServer("one", "/bin/x", ("-a",), {"K": "v"}),
        EditorServer("two", url="https://x"),
    )
    write_servers(bench.settings, "s", servers)
    file = servers_file(bench.settings, "s")

    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text())["mcpServers"] == {
        "one": {"command": "/bin/x", "args": ["-a"], "env": {"K": "v"}},
        "two": {"url": "https://x", "headers": {}},
    }
    write_servers(bench.settings, "s", ())
    assert not file.exists()
