"""Editors bring MCP servers, choose models and modes, run commands; two different clients do."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any  # Any: the client is given whatever the protocol has

import acp
import anyio
import anyio.to_thread
import pytest
from acp import schema

from holdfast.agent.providers.registry import Format
from holdfast.agent.providers.scripted import ScriptedAnswer
from tests.agent.mcp.test_server import HERE
from tests.cli.conversations import in_conversation, scripted
from tests.cli.running import COMMAND, environment
from tests.cli.workbenches import Bench
from tests.journeys.native_stage import KEY, serving, settle
from tests.journeys.stage import linux_only
from tests.journeys.test_editors import Editor, connected, connected_with
from tests.parts.acpx_client import acpx
from tests.parts.provider_server import ProviderServer, Reply

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(240), linux_only]

GREET = [acp.text_block("Greet")]
NATIVE = ("--runner", "native", "--model", "there/some-model", "--consent")
SECRET = "secret-of-an-editor"


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


def greetings(_: ProviderServer) -> Iterator[ScriptedAnswer | Reply]:
    while True:
        yield ScriptedAnswer(say="Hello.")


def stub_server(log: Path) -> schema.McpServerStdio:
    variables = {"PYTHONPATH": HERE, "TOKEN": SECRET}
    return schema.McpServerStdio(
        name="my stub",
        command=sys.executable,
        args=["-m", "tests.agent.mcp_stub", str(log)],
        env=[schema.EnvVariable(name=name, value=value) for name, value in variables.items()],
    )


async def commands_of(editor: Editor) -> list[str]:
    """The names of the commands that an editor is told of, as soon as it is."""
    while True:
        for each in editor.updates:
            if each.session_update == "available_commands_update":
                return [command.name for command in each.available_commands]
        await anyio.sleep(0.01)


@pytest.mark.promise("T6")
async def test_the_servers_of_an_editor_are_connected_once_its_user_agreed(bench: Bench) -> None:
    log = bench.home / "log"
    async with serving(Format.MESSAGES, greetings) as server:
        settle(bench, Format.MESSAGES, there=server.url)
        for turn in range(3):
            refuses = turn == 0
            async with connected_with(bench, *NATIVE) as (agent, editor):
                editor.can_ask = not refuses
                given = [stub_server(log)]
                begun = await agent.new_session(cwd=str(bench.project), mcp_servers=given)
                await agent.prompt(session_id=begun.session_id, prompt=GREET)
                asked = [each for each in editor.asked if "MCP server my-stub" in each]
                has_tools = b"my-stub" in server.requests[-1].body
                assert (len(asked), has_tools) == ((1, False), (1, True), (0, True))[turn]
        changed = stub_server(log)
        changed.args = [*changed.args, "changed"]
        async with connected_with(bench, *NATIVE) as (agent, editor):
            begun = await agent.new_session(cwd=str(bench.project), mcp_servers=[changed])
            await agent.prompt(session_id=begun.session_id, prompt=GREET)
            assert any("MCP server my-stub" in each for each in editor.asked)
    state = (path for path in bench.settings.state.rglob("*") if path.is_file())
    assert not [path for path in state if SECRET.encode() in path.read_bytes()]


@pytest.mark.promise("S1")
async def test_a_model_is_chosen_and_kept_with_the_session(bench: Bench) -> None:
    async with serving(Format.MESSAGES, greetings) as server:
        settle(bench, Format.MESSAGES, there=server.url)
        async with connected_with(bench, *NATIVE) as (agent, _):
            begun = await agent.new_session(cwd=str(bench.project))
            options = {each.id: each for each in begun.config_options}
            assert list(options) == ["mode", "model", "effort"]
            assert options["model"].current_value == "there/some-model"
            session = begun.session_id
            for wrong in (("model", "nothing"), ("colour", "red"), ("effort", "much")):
                with pytest.raises(acp.RequestError):
                    await agent.set_config_option(*wrong[:1], session, wrong[1])
            await agent.set_config_option("model", session, "there/other")
            await agent.set_config_option("effort", session, "high")
            await agent.set_session_mode(session_id=session, mode_id="in-place")
            await agent.prompt(session_id=session, prompt=GREET)
            body = json.loads(server.requests[-1].body)
            assert body["model"] == "other"
        async with connected_with(bench, *NATIVE) as (agent, _):
            loaded = await agent.load_session(cwd=str(bench.project), session_id=session)
            kept = {each.id: each.current_value for each in loaded.config_options}
    assert kept == {"mode": "in-place", "model": "there/other", "effort": "high"}
    assert loaded.modes.current_mode_id == "in-place"


@pytest.mark.promise("W3")
async def test_in_place_mode_holds_after_the_session_is_loaded_again(bench: Bench) -> None:
    turns = ('{write = "b", content = "two\\n"}, {say = "One."}',)
    async with connected(bench, *turns) as (agent, _):
        session = (await agent.new_session(cwd=str(bench.project))).session_id
        await agent.set_session_mode(session_id=session, mode_id="in-place")
    async with connected(bench, *turns) as (agent, _):
        await agent.load_session(cwd=str(bench.project), session_id=session)
        await agent.prompt(session_id=session, prompt=GREET)
    assert bench.files() == {"a": "one\n", "b": "two\n"}


@pytest.mark.promise("S1")
async def test_commands_are_told_and_work(bench: Bench) -> None:
    async with connected(bench, '{write = "b", content = "two\\n"}, {say = "One."}') as both:
        agent, editor = both
        session = (await agent.new_session(cwd=str(bench.project))).session_id
        names = await commands_of(editor)
        await agent.prompt(session_id=session, prompt=GREET)
        editor.updates.clear()
        said: dict[str, str] = {}
        for name in [name for name in names if name != "compact"]:
            command = [acp.text_block(f"/{name}")]
            answer = await agent.prompt(session_id=session, prompt=command)
            assert answer.stop_reason == "end_turn"
            said[name], editor.updates[:] = editor.told, []
    assert names == ["diff", "undo", "status", "checkpoints", "compact"]
    assert "+two" in said["diff"]
    assert "\x1b" not in "".join(said.values())


@pytest.mark.promise("S1", "T6")
async def test_another_client_leads_a_turn_answers_and_brings_a_server(bench: Bench) -> None:
    """acpx, as people install it: a prompt, a permission, and an MCP server of its own."""
    node, script = acpx()
    env = environment(bench.home, HOME=str(bench.home))

    def ran(*words: str, agent: tuple[str, ...]) -> list[dict[str, Any]]:
        command = " ".join([*COMMAND, "acp", *agent])
        argv = [node, script, "--cwd", str(bench.project), "--approve-all", "--format", "json"]
        done = subprocess.run(
            [*argv, *words[:-1], "--agent", command, "exec", words[-1]],
            env=env,
            cwd=bench.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    steps = '{ask = "May I?", detail = "make it", approval = true}, {say = "Done."}'
    script_file = scripted(bench, steps)
    lines = await anyio.to_thread.run_sync(lambda: ran("Go on", agent=("--scenario", script_file)))
    (asked,) = [each for each in lines if each.get("method") == "session/request_permission"]
    call = asked["params"]["toolCall"]
    assert (call["title"], call["rawInput"]) == ("May I?", {"detail": "make it"})
    assert call["content"][0]["content"]["text"] == "May I?\nmake it"
    assert lines[-1]["result"] == {"stopReason": "end_turn"}

    servers = bench.home / "servers.json"
    stub = stub_server(bench.home / "log")
    variables = [{"name": each.name, "value": each.value} for each in stub.env]
    given = {"name": stub.name, "command": stub.command, "args": stub.args, "env": variables}
    servers.write_text(json.dumps({"mcpServers": [given]}))
    async with serving(Format.MESSAGES, greetings) as server:
        settle(bench, Format.MESSAGES, there=server.url)
        more = ("--mcp-config", str(servers), "--model", "there/some-model")
        lines = await anyio.to_thread.run_sync(lambda: ran(*more, "Greet", agent=NATIVE))
        assert lines[-1]["result"] == {"stopReason": "end_turn"}
        assert b"my-stub" in server.requests[-1].body
        assert KEY not in json.dumps(lines)
