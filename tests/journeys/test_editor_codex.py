"""Editors bring MCP servers to the real Codex."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any  # Any: the client is given whatever the protocol has

import acp
import anyio
import anyio.to_thread
import pytest
from acp import schema

from tests.agent.mcp.test_server import HERE
from tests.cli.conversations import hosts_of, in_conversation
from tests.cli.planes import eventually
from tests.cli.workbenches import Bench
from tests.journeys.stage import linux_only
from tests.journeys.test_editors import Editor, connected_with
from tests.parts.codex_binary import OLDEST, VERSION, codex_binary, codex_home
from tests.parts.model_acts import Call, Reply, Say
from tests.parts.model_server import ModelRequest, ModelServer

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(240), linux_only]

SECRET, ECHOED = "secret-of-an-editor-1", "told-by-a-tool-2"
CODEX = ("--runner", "codex", "--consent")
GO = [acp.text_block("Go")]


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


def codex_env(bench: Bench, url: str, version: str = VERSION, **home: Any) -> dict[str, str]:
    found = codex_home(bench.home / "c", url, **home)
    return {**found, "HOLDFAST_CODEX": str(codex_binary(version))}


def stub_server(log: Path, name: str = "my stub") -> schema.McpServerStdio:
    """A server that starts more slowly than Codex waits for by itself, and leaves a file."""
    run = shlex.join([sys.executable, "-m", "tests.agent.mcp_stub", str(log)])
    note = f"echo mark $HOLDFAST_AGENT >> {shlex.quote(str(log))}"
    script = f"sleep 1.5; touch of-the-server; {note}; exec {run}"
    variables = {"PYTHONPATH": HERE, "TOKEN": SECRET, "GIVEN": ECHOED}
    return schema.McpServerStdio(
        name=name,
        command="sh",
        args=["-c", script],
        env=[schema.EnvVariable(name=key, value=value) for key, value in variables.items()],
    )


def uses_the_stub(request: ModelRequest) -> Reply:
    """Use its tool once in each turn, and say what it came to."""
    last = request.body["input"][-1]
    if last.get("type") != "function_call_output":
        call = f"use-{len(request.body['input'])}"
        return [Call("echo", {"text": "hi"}, call, namespace="mcp__my_stub")]
    return [Say(f"It said {json.dumps(last['output'])}.")]


def thoughts(editor: Editor) -> list[str]:
    return [each.content.text for each in editor.updates if "thought" in each.session_update]


def files_with(place: Path, words: str) -> list[Path]:
    """The files below a directory that hold these words."""
    return [each for each in place.rglob("*") if each.is_file() and words in _text(each)]


def _text(file: Path) -> str:
    return file.read_bytes().decode("latin-1")


@pytest.mark.promise("S1", "T6")
@pytest.mark.parametrize("version", [OLDEST, VERSION])
async def test_codex_uses_a_server_of_the_editor_also_after_the_host_was_killed(
    version: str, bench: Bench
) -> None:
    log = bench.home / "log"
    async with ModelServer(uses_the_stub) as model:
        env = codex_env(bench, model.url, version)
        async with connected_with(bench, *CODEX, **env) as (agent, editor):
            begun = await agent.new_session(cwd=str(bench.project), mcp_servers=[stub_server(log)])
            await agent.prompt(session_id=begun.session_id, prompt=GO)
            while_it_runs = files_with(bench.settings.state, SECRET)
            first = editor.told
            for host in hosts_of(bench):
                os.kill(host, signal.SIGKILL)
            await anyio.to_thread.run_sync(eventually, lambda: not hosts_of(bench))
            editor.updates.clear()
            await agent.prompt(session_id=begun.session_id, prompt=GO)
            second = editor.told
        outputs = model.requests[-1].tool_outputs
        diff = bench.ran("draft", "diff", "--json").stdout

    asked = [each for each in editor.asked if "MCP server my-stub" in each]
    marks = [line.split()[1:] for line in log.read_text().splitlines() if "mark" in line]
    assert (len(asked), thoughts(editor)) == (1, [])
    assert [ECHOED in json.dumps(each) for each in outputs.values()] == [True, True]
    assert ["It said" in each and "[redacted:known]" in each for each in (first, second)] == [
        True,
        True,
    ]
    assert [mark.partition("/")[0] for (mark,) in marks] == [begun.session_id] * 2
    assert (bench.files(), b"of-the-server" in diff) == ({"a": "one\n"}, True)
    state = bench.settings.state
    assert (while_it_runs, files_with(state, SECRET)) == ([], [])
    assert not [each for each in files_with(state, ECHOED) if each.name not in {"stdout"}]


@pytest.mark.promise("S1")
async def test_servers_that_codex_cannot_have_are_named_and_the_turn_goes_on(bench: Bench) -> None:
    log = bench.home / "log"
    missing = schema.McpServerStdio(name="gone", command="/no/such", args=[], env=[])
    given = [stub_server(log, name) for name in ("mine", "codex_apps", "my stub")]
    async with ModelServer(uses_the_stub) as model:
        env = codex_env(bench, model.url)
        with (bench.home / "c" / "codex-home" / "config.toml").open("a") as config:
            config.write('\n[mcp_servers.mine]\nurl = "http://127.0.0.1:9/"\nenabled = false\n')
        async with connected_with(bench, *CODEX, **env) as (agent, editor):
            servers = [*given, missing]
            begun = await agent.new_session(cwd=str(bench.project), mcp_servers=servers)
            await agent.prompt(session_id=begun.session_id, prompt=GO)

    assert sorted(text.strip().partition(": MCP")[0] for text in thoughts(editor)) == [
        "Not connected: the MCP server codex_apps. Codex reserves this name.",
        "Not connected: the MCP server mine. Codex has one of this name in its settings.",
        "The MCP server gone did not start",
    ]
    assert "It said" in editor.told


@pytest.mark.promise("S1")
@pytest.mark.parametrize("version", [OLDEST, VERSION])
@pytest.mark.parametrize("is_agreed", [True, False])
async def test_the_editor_is_asked_before_codex_calls_a_tool_that_may_change_things(
    is_agreed: bool, version: str, bench: Bench
) -> None:
    call = Call("change", {"text": "hi"}, "use", namespace="mcp__my_stub")
    given = [stub_server(bench.home / "log")]
    async with ModelServer([[call], [Say("Done.")]]) as model:
        env = codex_env(bench, model.url, version, approval_policy="on-request")
        async with connected_with(bench, *CODEX, **env) as (agent, editor):

            async def refuse(_: object) -> None:
                editor.can_ask = is_agreed or not editor.asked  # the server itself is agreed to

            editor.when_told = refuse
            begun = await agent.new_session(cwd=str(bench.project), mcp_servers=given)
            await agent.prompt(session_id=begun.session_id, prompt=GO)
        output = json.dumps(model.requests[-1].tool_outputs["use"])

    assert editor.asked == [
        "Connect the MCP server my-stub?: ['connect', 'refuse']",
        "my-stub: change: ['yes', 'always', 'no', 'stop']",
    ]
    assert ("it is broken" in output, "user rejected" in output) == (is_agreed, not is_agreed)


@pytest.mark.promise("S1")
async def test_a_server_that_is_refused_by_the_person_is_not_started(bench: Bench) -> None:
    log = bench.home / "log"
    async with ModelServer([[Say("Hello.")]]) as model:
        async with connected_with(bench, *CODEX, **codex_env(bench, model.url)) as (agent, editor):
            editor.can_ask = False
            begun = await agent.new_session(cwd=str(bench.project), mcp_servers=[stub_server(log)])
            with anyio.fail_after(60):
                await agent.prompt(session_id=begun.session_id, prompt=GO)

    assert (len(editor.asked), editor.told, log.exists()) == (1, "Hello.", False)
