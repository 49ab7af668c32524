"""The generated types against the schema of the real Codex, and against what it really says."""

from __future__ import annotations

import importlib.util
import json
import sys
import time
import timeit
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from holdfast.codex.wire import generated
from holdfast.codex.wire.generated import (
    NOTIFICATIONS,
    RESULTS,
    SERVER_REQUESTS,
    AgentMessageDeltaNotification,
    ClientInfo,
    CodexErrorKind,
    CommandExecutionRequestApprovalResponse,
    InitializeCapabilities,
    InitializeParams,
    TextUserInput,
    ThreadResumeParams,
    ThreadStartParams,
    TurnInterruptParams,
    TurnStartParams,
    UpdatePatchChangeKind,
    WorkspaceWriteSandboxPolicy,
)
from holdfast.codex.wire.message import WireMessage
from holdfast.codex.wire.reading import Cause, cause_of, read_params
from holdfast.rpc.failures import ParamsInvalid
from tests.parts.codex_binary import VERSION, codex_binary
from tests.parts.conversation import Json
from tests.parts.recording import lacking, record, recorded

ROOT = Path(__file__).parent.parent.parent.parent
DELTA = (
    b'{"threadId":"01a1b2c3-0000-7000-8000-00000000000a","turnId":"01a1b2c3-0000-7000-8000-'
    b'00000000000b","itemId":"msg_0000000003","delta":"streamed text, a few words long"}'
)


def misfits(said: list[tuple[str, Json]]) -> list[str]:
    """Name every message of the server that does not fit at once, or holds what is foreign."""
    asked: dict[object, str] = {}
    found: list[str] = []
    for speaker, message in said:
        if speaker == "client":
            asked[message.get("id")] = message.get("method", "")
            continue
        method, wanted = _wanted(message, asked)
        if wanted is None:
            continue
        try:
            value = msgspec.convert(message.get("params", message.get("result")), wanted)
        except msgspec.ValidationError as error:
            found.append(f"{method}: {error}")
        else:
            found += [f"{method}: {name}" for name in [repr(value)] if "Foreign" in name]
    return found


def _wanted(message: Json, asked: dict[object, str]) -> tuple[str, type[WireMessage] | None]:
    method = message.get("method")
    if method is None:
        method = asked[message["id"]]
        return method, RESULTS.get(method)
    return method, (SERVER_REQUESTS if "id" in message else NOTIFICATIONS).get(method)


def generator() -> ModuleType:
    """The script, which is no part of any package."""
    path = ROOT / "scripts" / "generate_codex_types.py"
    spec = importlib.util.spec_from_file_location("generate_codex_types", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_types_are_those_of_the_pinned_codex() -> None:
    script = generator()
    schema, version = script.printed(codex_binary())

    assert version == VERSION
    assert (
        script.formatted(script.generate(schema, version)) == Path(generated.__file__).read_text()
    )


def test_all_that_was_recorded_fits() -> None:
    said = recorded()

    assert misfits(said) == []
    assert {message.get("method") for _, message in said} > {
        "error",
        "item/agentMessage/delta",
        "item/commandExecution/outputDelta",
        "item/commandExecution/requestApproval",
        "item/fileChange/requestApproval",
        "turn/completed",
    }


@pytest.mark.anyio
async def test_all_that_the_real_codex_says_fits(tmp_path: Path) -> None:
    said = await record(codex_binary(), tmp_path)

    assert len(said) > 150
    assert misfits(said) == []


def test_a_recording_that_does_not_fit_is_noticed() -> None:
    bad: Json = {"method": "turn/completed", "params": {"threadId": 5, "turn": {}}}
    new: Json = {"method": "item/started", "params": {"item": {"type": "?", "id": "1"}}}
    new["params"] |= {"threadId": "t", "turnId": "u", "startedAtMs": 0}

    assert [line.split(":")[0] for line in misfits([("server", bad), ("server", new)])] == [
        "turn/completed",
        "item/started",
    ]


@pytest.mark.parametrize(
    ("record", "written"),
    [
        (ThreadStartParams(), {}),
        (
            ThreadStartParams(cwd="/p", approval_policy="on-request", sandbox="workspace-write"),
            {"cwd": "/p", "approvalPolicy": "on-request", "sandbox": "workspace-write"},
        ),
        (
            ThreadResumeParams(thread_id="t", exclude_turns=True),
            {"threadId": "t", "excludeTurns": True},
        ),
        (
            TurnStartParams(thread_id="t", input=(TextUserInput(text="hi"),)),
            {"threadId": "t", "input": [{"type": "text", "text": "hi"}]},
        ),
        (
            TurnInterruptParams(thread_id="t", turn_id="u"),
            {"threadId": "t", "turnId": "u"},
        ),
        (
            InitializeParams(
                client_info=ClientInfo(name="n", version="1"),
                capabilities=InitializeCapabilities(experimental_api=True),
            ),
            {
                "clientInfo": {"name": "n", "version": "1"},
                "capabilities": {"experimentalApi": True},
            },
        ),
        (CommandExecutionRequestApprovalResponse(decision="decline"), {"decision": "decline"}),
        (UpdatePatchChangeKind(move_path="to"), {"type": "update", "move_path": "to"}),
        (
            WorkspaceWriteSandboxPolicy(writable_roots=("/p",)),
            {"type": "workspaceWrite", "writableRoots": ["/p"]},
        ),
    ],
)
def test_what_is_written_names_only_what_was_chosen(record: WireMessage, written: Json) -> None:
    assert json.loads(msgspec.json.encode(record)) == written
    assert msgspec.convert(written, type(record)) == record


NEEDED = {  # as docs/how-to/embed-codex.md says; a list leaves out what lacks its id
    ("thread/start", "thread"),
    ("thread/start", "thread.id"),
    ("thread/resume", "thread"),
    ("thread/resume", "thread.id"),
    ("thread/fork", "thread"),
    ("thread/fork", "thread.id"),
    ("thread/read", "thread"),
    ("thread/read", "thread.id"),
    ("turn/start", "turn"),
    ("turn/start", "turn.id"),
    ("thread/started", "thread"),
    ("thread/started", "thread.id"),
    ("turn/started", "turn"),
    ("turn/started", "turn.id"),
    ("turn/completed", "turn"),
    ("turn/completed", "turn.id"),
    ("item/commandExecution/requestApproval", "itemId"),
    ("item/fileChange/requestApproval", "itemId"),
}


@pytest.mark.promise("F12")
def test_whatever_the_server_leaves_out_but_for_a_few_names_its_message_is_read() -> None:
    unread: set[tuple[str, str]] = set()
    asked: dict[object, str] = {}
    for speaker, message in recorded():
        if speaker == "client":
            asked[message.get("id")] = message.get("method", "")
            continue
        method, wanted = _wanted(message, asked)
        for way, less in lacking(message["params"] if "params" in message else message["result"]):
            try:
                if wanted is not None:
                    read_params(method, wanted, msgspec.Raw(json.dumps(less).encode()))
            except ParamsInvalid:
                unread.add((method, way))

    assert unread == NEEDED


def test_what_we_write_has_no_blanks_for_what_it_must_say() -> None:
    for blank in (TextUserInput, TurnStartParams, CommandExecutionRequestApprovalResponse):
        with pytest.raises(msgspec.ValidationError, match="missing required field"):
            msgspec.convert({"type": "text"}, blank)


def test_every_error_of_the_recording_has_a_name() -> None:
    errors = [m["params"]["error"] for _, m in recorded() if m.get("method") == "error"]
    infos = [error["codexErrorInfo"] for error in errors]

    assert {cause_of(info) for info in infos} == {
        Cause(
            CodexErrorKind.RESPONSE_TOO_MANY_FAILED_ATTEMPTS, "responseTooManyFailedAttempts", 429
        ),
        Cause(CodexErrorKind.RESPONSE_STREAM_DISCONNECTED, "responseStreamDisconnected"),
    }


def test_a_delta_is_read_in_less_than_a_microsecond() -> None:
    decoder = msgspec.json.Decoder(AgentMessageDeltaNotification)
    rounds = timeit.repeat(
        lambda: decoder.decode(DELTA), number=5000, repeat=40, timer=time.process_time
    )

    assert min(rounds) / 5000 <= 0.6e-6
