"""What an editor can choose of a session, and what it brings along."""

from __future__ import annotations

import pytest
from acp import schema

from holdfast.acp.model import EditorServer, EditorState, Opened, server_content
from holdfast.acp.session import (
    chosen,
    command_in,
    config_options,
    mode_of,
    server_call,
    servers_of,
)

ABOUT = Opened("s", "/p", "", "", draft="draft_1", models=("a/one", "b/two"))
SCRIPTED = ABOUT._replace(models=())


@pytest.mark.parametrize(
    ("option", "value", "state"),
    [
        ("mode", "in-place", EditorState(mode="in-place")),
        ("mode", "of tomorrow", None),
        ("model", "b/two", EditorState(model="b/two")),
        ("model", "c/three", EditorState(model="c/three")),
        ("model", "three", None),
        ("model", True, None),
        ("effort", "high", EditorState(effort="high")),
        ("effort", "default", EditorState()),
        ("effort", "much", None),
        ("colour", "red", None),
    ],
)
def test_an_option_has_its_values(option: str, value: object, state: EditorState | None) -> None:
    assert chosen(ABOUT, EditorState(), option, value) == state


def test_an_agent_without_models_has_only_modes() -> None:
    assert [each.id for each in config_options(SCRIPTED, EditorState())] == ["mode"]
    assert chosen(SCRIPTED, EditorState(), "model", "a/one") is None
    assert mode_of(EditorState(mode="of yesterday")).id == "ask"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/diff", ("diff", ("draft", "diff", "--draft", "draft_1"))),
        (" /status ", ("status", ("status",))),
        ("/compact", ("compact", ())),
        ("/publish", None),
        ("/diff of what?", None),
        ("diff", None),
        ("/usr/bin/diff", None),
    ],
)
def test_a_prompt_may_be_a_command(text: str, found: object) -> None:
    assert command_in(text, ABOUT) == found


@pytest.mark.promise("T6")
def test_servers_are_read_and_shown_without_their_secrets() -> None:
    stdio = schema.McpServerStdio(
        name="my server",
        command="/bin/run",
        args=["-x"],
        env=[schema.EnvVariable(name="TOKEN", value="secret")],
    )
    http = schema.HttpMcpServer(
        name="web",
        url="https://there.example/mcp",
        headers=[schema.HttpHeader(name="Authorization", value="secret")],
        type="http",
    )
    local, web = servers_of([stdio, http, object()])

    assert local == EditorServer("my-server", "/bin/run", ("-x",), {"TOKEN": "secret"})
    assert web == EditorServer(
        "web", url="https://there.example/mcp", headers={"Authorization": "secret"}
    )
    for each in (local, web):
        shown = server_call(each).model_dump_json()
        assert "secret" not in shown
    assert "/bin/run -x" in server_call(local).model_dump_json()
    assert server_content(local) != server_content(local._replace(env={"TOKEN": "other"}))
