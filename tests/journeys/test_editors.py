"""The official client of the Agent Client Protocol leads whole sessions."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any  # Any: the client is given whatever the protocol has

import acp
import anyio
import anyio.to_thread
import pytest
from acp import schema

from holdfast.agent.providers.registry import Format
from holdfast.agent.providers.scripted import ScriptedAnswer
from holdfast.app.sessions import Sessions
from holdfast.host.model import (
    AnswerSource,
    AnyRecord,
    EventRecorded,
    PromptQueued,
    QuestionAnswered,
)
from holdfast.workbench import Workbench
from tests.cli.conversations import hosts_of, in_conversation, scripted
from tests.cli.planes import eventually
from tests.cli.running import COMMAND, environment
from tests.cli.workbenches import Bench
from tests.journeys.native_stage import serving, settle
from tests.parts.provider_server import ProviderServer, Reply

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]

GO = acp.text_block("Go")


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


class Editor(acp.Client):
    """An editor that writes down what it is told, and answers with the first choice."""

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.on_progress: list[tuple[str, dict[str, Any]]] = []
        self.asked: list[str] = []
        self.can_ask = True
        self.outcome: Any = None  # what is answered in place of a choice
        self.when_told: Any = None

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)
        if self.when_told is not None:
            await self.when_told(update)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> schema.RequestPermissionResponse:
        self.asked.append(f"{tool_call.title}: {[each.option_id for each in options]}")
        if not self.can_ask:
            raise acp.RequestError.method_not_found("session/request_permission")
        if self.outcome is not None:
            answer: Any = self.outcome  # sent as it is, valid or not
            return answer
        chosen = schema.AllowedOutcome(option_id=options[0].option_id, outcome="selected")
        return schema.RequestPermissionResponse(outcome=chosen)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        self.on_progress.append((method, params))

    @property
    def told(self) -> str:
        """What was said by the person and the agent, put together."""
        return "".join(
            each.content.text
            for each in self.updates
            if each.session_update.endswith("message_chunk")
        )


@asynccontextmanager
async def connected(bench: Bench, *turns: str) -> AsyncGenerator[tuple[Any, Editor]]:
    words = ("--scenario", scripted(bench, *turns))
    async with connected_with(bench, *words) as (agent, editor):
        yield agent, editor


@asynccontextmanager
async def connected_with(
    bench: Bench, *words: str, **variables: str
) -> AsyncGenerator[tuple[Any, Editor]]:
    editor = Editor()
    argv = [*COMMAND, "acp", *words]
    env = environment(bench.home, **variables)
    client: Any = editor
    async with acp.spawn_agent_process(
        client, *argv, env=env, cwd=bench.project, use_unstable_protocol=True
    ) as (agent, _):
        hello = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        assert hello.agent_info.name == "holdfast"
        yield agent, editor


async def test_an_editor_leads_a_session_and_loads_it_again(bench: Bench) -> None:
    steps = '{say = "I ask."}, {ask = "May I?"}, {write = "b", content = "two"}, {say = "Done."}'
    words = [acp.text_block("Write b")]
    async with connected(bench, steps) as (agent, editor):
        session = (await agent.new_session(cwd=str(bench.project))).session_id
        answer = await agent.prompt(session_id=session, prompt=words)

        assert answer.stop_reason == "end_turn"
        assert editor.told == "I ask.\n\nDone."
        assert editor.asked == ["May I?: ['yes', 'no']"]
        calls = [e for e in editor.updates if e.session_update.startswith("tool_call")]
        assert [each.status for each in calls if each.status] == ["in_progress", "completed"]
        places = [place.path for each in calls for place in each.locations or ()]
        assert places == [str(bench.project / "b")] * 2
    async with connected(bench, steps) as (agent, editor):
        listed = await agent.list_sessions(cwd=str(bench.project))
        assert [each.session_id for each in listed.sessions] == [session]
        await agent.load_session(cwd=str(bench.project), session_id=session)

        assert editor.told == "Write bI ask.\n\nDone."
    assert bench.files() == {"a": "one\n"}


async def test_an_editor_forks_a_session_and_changes_how_turns_are_taken(bench: Bench) -> None:
    turns = [
        '{ask = "May I?"}, {say = "One."}',
        '{ask = "And now?"}, {write = "b", content = "two\\n"}, {say = "Two."}',
    ]
    async with connected(bench, *turns) as (agent, editor):
        begun = await agent.new_session(cwd=str(bench.project))
        await agent.prompt(session_id=begun.session_id, prompt=[acp.text_block("First")])
        fork = await agent.fork_session(cwd=str(bench.project), session_id=begun.session_id)
        modes = [each.id for each in fork.modes.available_modes]
        with pytest.raises(acp.RequestError):
            await agent.set_session_mode(session_id=fork.session_id, mode_id="of tomorrow")

        await agent.set_session_mode(session_id=begun.session_id, mode_id="alone")
        alone = [acp.text_block("Second, alone")]
        await agent.prompt(session_id=begun.session_id, prompt=alone)
        before = bench.files()
        await agent.set_session_mode(session_id=fork.session_id, mode_id="in-place")
        in_place = [acp.text_block("Second, in place")]
        await agent.prompt(session_id=fork.session_id, prompt=in_place)
        editor.updates.clear()
        loaded = await agent.load_session(cwd=str(bench.project), session_id=fork.session_id)

    assert modes == ["ask", "in-place", "alone"]
    assert (fork.modes.current_mode_id, loaded.modes.current_mode_id) == ("ask", "in-place")
    assert editor.asked == ["May I?: ['yes', 'no']", "And now?: ['yes', 'no']"]  # not in between
    assert editor.told == "FirstOne.Second, in placeTwo."
    assert (before, bench.files()) == ({"a": "one\n"}, {"a": "one\n", "b": "two\n"})


@pytest.mark.long
@pytest.mark.promise("W12")
async def test_an_editor_asks_before_anything_is_sent(bench: Bench) -> None:
    def answers(_: ProviderServer) -> Iterator[ScriptedAnswer | Reply]:
        yield ScriptedAnswer(say="Hello.")

    words = ("--runner", "native", "--model", "there/some-model")
    prompt = [acp.text_block("Greet")]
    async with serving(Format.MESSAGES, answers) as server:
        settle(bench, Format.MESSAGES, there=server.url)
        async with connected_with(bench, *words) as (agent, editor):
            session = (await agent.new_session(cwd=str(bench.project))).session_id
            await agent.set_session_mode(session_id=session, mode_id="alone")
            with pytest.raises(acp.RequestError) as refused:
                await agent.prompt(session_id=session, prompt=prompt)
            sent = len(server.requests)
            await agent.set_session_mode(session_id=session, mode_id="ask")
            await agent.prompt(session_id=session, prompt=prompt)

    asked = f"Let there and its models see all of {bench.project}?: ['agree', 'refuse']"
    assert (refused.value.data["code"], sent) == ("EGRESS_CONSENT_REQUIRED", 0)
    assert (editor.asked, editor.told, len(server.requests)) == ([asked], "Hello.", 1)
    given = bench.ran("consent", "--json").stdout
    assert b'"provider":"there"' in given.replace(b" ", b"")


async def test_a_turn_is_cancelled(bench: Bench) -> None:
    async with connected(bench, '{say = "I wait."}, {wait = 60}') as (agent, editor):
        session = (await agent.new_session(cwd=str(bench.project))).session_id

        async def cancel(update: Any) -> None:
            if update.session_update == "agent_message_chunk":
                editor.when_told = None
                await agent.cancel(session_id=session)

        editor.when_told = cancel
        answer = await agent.prompt(session_id=session, prompt=[GO])

        assert answer.stop_reason == "cancelled"


@pytest.mark.promise("A11")
async def test_a_turn_is_cancelled_before_it_has_begun(bench: Bench) -> None:
    """Also those that wait for it; who comes later is heard, and told what is theirs alone."""
    async with connected(bench, '{say = "One."}', '{say = "Two."}') as (agent, editor):
        session = (await agent.new_session(cwd=str(bench.project))).session_id
        reasons: dict[str, str] = {}

        async def prompt(words: str) -> None:
            blocks = [acp.text_block(words)]
            answer = await agent.prompt(session_id=session, prompt=blocks)
            reasons[words] = answer.stop_reason

        async with anyio.create_task_group() as tasks:
            for words in ("a", "b"):
                tasks.start_soon(prompt, words)
            while await running(agent) != [session]:
                pass
            await agent.cancel(session_id=session)
            for words in ("c", "d"):
                tasks.start_soon(prompt, words)

        assert reasons == {"a": "cancelled", "b": "cancelled", "c": "end_turn", "d": "end_turn"}
        assert editor.told == "One.Two."
        assert await running(agent) == []


async def running(agent: Any) -> list[str]:
    """Of which sessions turns run, as is answered at any time."""
    pong: dict[str, list[str]] = await agent.ext_method("holdfast/ping", {})
    return pong["sessions"]


@pytest.mark.promise("S1")
@pytest.mark.parametrize(
    "outcome",
    [
        {"outcome": "selected", "optionId": "no such choice"},
        {"outcome": "selected"},
        {"outcome": "cancelled"},
        {"outcome": "nonsense"},
    ],
)
async def test_an_answer_that_makes_no_sense_is_a_refusal(
    outcome: dict[str, str], bench: Bench
) -> None:
    async with connected(bench, '{ask = "May I?", approval = true}, {say = "Done."}') as both:
        agent, editor = both
        editor.outcome = {"outcome": outcome}
        session = (await agent.new_session(cwd=str(bench.project))).session_id
        with anyio.fail_after(60):
            answer = await agent.prompt(session_id=session, prompt=[GO])

    answered = [each for each in records(bench) if isinstance(each, QuestionAnswered)]
    assert (answer.stop_reason, editor.told) == ("end_turn", "Then I leave the rest.")
    assert [(each.answer, each.by) for each in answered] == [("no", AnswerSource.UNATTENDED)]


async def test_servers_that_an_agent_cannot_use_are_named_and_not_asked_for(bench: Bench) -> None:
    given = schema.McpServerStdio(name="my stub", command="true", args=[], env=[])
    async with connected(bench, '{say = "One."}') as (agent, editor):
        begun = await agent.new_session(cwd=str(bench.project), mcp_servers=[given])
        await agent.prompt(session_id=begun.session_id, prompt=[GO])

    thoughts = [each.content.text for each in editor.updates if "thought" in each.session_update]
    assert (editor.asked, editor.told) == ([], "One.")
    assert [text.partition(".")[0] for text in thoughts] == ["Not connected: my-stub"]


async def test_an_editor_that_cannot_ask_refuses(bench: Bench) -> None:
    async with connected(bench, '{ask = "May I?"}') as (agent, editor):
        editor.can_ask = False
        session = (await agent.new_session(cwd=str(bench.project))).session_id
        answer = await agent.prompt(session_id=session, prompt=[GO])

    answered = [each for each in records(bench) if isinstance(each, QuestionAnswered)]
    assert (len(editor.asked), answer.stop_reason) == (1, "end_turn")
    assert [(each.answer, each.by) for each in answered] == [("no", AnswerSource.UNATTENDED)]


@pytest.mark.long
async def test_what_waits_goes_with_the_turn_that_somebody_else_ends(bench: Bench) -> None:
    turn = '{say = "I wait."}, {wait = 60}'
    reasons: list[str] = []

    async def prompt(agent: Any) -> None:
        answer = await agent.prompt(session_id=session, prompt=[GO])
        reasons.append(answer.stop_reason)

    async with connected(bench, turn) as (one, _), connected(bench, turn) as (other, _):
        session = (await one.new_session(cwd=str(bench.project))).session_id
        async with anyio.create_task_group() as tasks:
            for number, agent in enumerate((one, other), 1):
                tasks.start_soon(prompt, agent)
                await anyio.to_thread.run_sync(until, bench, PromptQueued, number)
            await anyio.to_thread.run_sync(until, bench, EventRecorded, 1)
            await one.cancel(session_id=session)

    assert reasons == ["cancelled", "cancelled"]


def until(bench: Bench, kind: type[AnyRecord], count: int) -> None:
    """Wait until so many of a kind are written down."""
    eventually(lambda: sum(isinstance(each, kind) for each in records(bench)) >= count)


def records(bench: Bench) -> list[AnyRecord]:
    """All that is written down of the only session."""
    kept = Sessions(bench.settings)
    [session] = kept.all()
    return [record for _, record in kept.records(session)]


async def test_an_editor_is_answered_while_a_session_begins(bench: Bench) -> None:
    async with connected(bench, '{say = "One."}') as (agent, _):
        async with anyio.create_task_group() as tasks:
            with Workbench.at(bench.project, bench.settings.state).locked():  # so that it must wait
                begin = partial(agent.new_session, cwd=str(bench.project))
                tasks.start_soon(begin)
                assert await running(agent) == []
        assert len((await agent.list_sessions()).sessions) == 1


@pytest.mark.promise("A4")
async def test_an_editor_is_answered_while_somebody_is_at_the_workbench(bench: Bench) -> None:
    async with connected(bench, '{say = "One."}') as (agent, _):
        session = (await agent.new_session(cwd=str(bench.project))).session_id
    order: list[str] = []

    async def resume(agent: Any) -> None:
        await agent.resume_session(cwd=str(bench.project), session_id=session)
        order.append("resumed")

    async with connected(bench) as (agent, _), anyio.create_task_group() as tasks:
        with Workbench.at(bench.project, bench.settings.state).locked():
            tasks.start_soon(resume, agent)
            await anyio.wait_all_tasks_blocked()
            await running(agent)
            order.append("answered")

    assert order == ["answered", "resumed"]


async def test_a_crash_is_told_with_its_reason_and_the_next_prompt_works(bench: Bench) -> None:
    async with connected(bench, '{say = "I wait."}, {wait = 60}') as (agent, editor):
        session = (await agent.new_session(cwd=str(bench.project))).session_id

        async def kill(update: Any) -> None:
            if update.session_update != "agent_message_chunk":
                return
            editor.when_told = None
            for host in hosts_of(bench):
                os.kill(host, signal.SIGKILL)

        editor.when_told = kill
        with pytest.raises(acp.RequestError) as failed:
            await agent.prompt(session_id=session, prompt=[GO])

        assert "Your conversation history is saved." in str(failed.value)
        assert failed.value.data["code"] == "HOST_CRASHED"
        crashes = [
            params for method, params in editor.on_progress if method.endswith("agent_crashed")
        ]
        assert [(each["attempt"], bool(each["reason"])) for each in crashes] == [(2, True)]
        editor.updates.clear()

        async def cancel(_: Any) -> None:
            editor.when_told = None
            await agent.cancel(session_id=session)

        editor.when_told = cancel
        answer = await agent.prompt(session_id=session, prompt=[acp.text_block("Again")])
        assert answer.stop_reason == "cancelled"


async def test_what_goes_wrong_is_an_error_with_all_that_is_known(bench: Bench) -> None:
    async with connected(bench, '{fail = "No luck."}') as (agent, _):
        session = (await agent.new_session(cwd=str(bench.project))).session_id
        with pytest.raises(acp.RequestError) as failed:
            await agent.prompt(session_id=session, prompt=[GO])
        with pytest.raises(acp.RequestError) as missing:
            await agent.load_session(cwd=str(bench.project), session_id="nobody")

        assert failed.value.data["userMessage"]
        assert missing.value.data["code"] == "SESSION_MISSING"
