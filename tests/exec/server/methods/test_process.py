"""What a client may do with processes, in the words of the wire."""

from __future__ import annotations

import base64
import os
import signal
from pathlib import Path

import pytest

from holdfast.exec.file_uri import uri_of
from holdfast.exec.output_index import RECORD_BYTES
from tests.exec.server.housing import housed
from tests.exec.server.talking import PATH, Json, Refused, Talk, names, until

pytestmark = pytest.mark.anyio


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def refusal(talk: Talk, method: str, **params: object) -> tuple[int, str, str]:
    with pytest.raises(Refused) as refused:
        await talk.call(method, **params)
    return refused.value.code, refused.value.text, refused.value.failure


def start(name: str, *argv: str, **more: object) -> Json:
    params = {"processId": name, "argv": list(argv), "cwd": "file:///tmp", "env": PATH}
    return {**params, "tty": False, **more}


async def test_a_process_tells_its_output_its_exit_and_its_close(tmp_path: Path) -> None:
    async with housed(tmp_path) as server, server.talk() as talk:
        began = await talk.start("p", "sh", "-c", "echo out; exit 3")
        await talk.closed("p")
        page = await talk.call("process/read", processId="p")

    assert began == {"processId": "p", "sandboxType": "none"}
    assert [(n["method"], n["params"]) for n in talk.news] == [
        (
            "process/output",
            {"processId": "p", "seq": 1, "stream": "stdout", "chunk": b64(b"out\n")},
        ),
        ("process/exited", {"processId": "p", "seq": 2, "exitCode": 3, "sandboxDenied": False}),
        ("process/closed", {"processId": "p", "seq": 3}),
    ]
    assert page == {
        "chunks": [{"seq": 1, "stream": "stdout", "chunk": b64(b"out\n")}],
        "nextSeq": 4,
        "exited": True,
        "exitCode": 3,
        "closed": True,
        "failure": None,
        "sandboxDenied": False,
        "firstRetainedSeq": 1,
        "hasMore": False,
    }


async def test_what_cannot_be_started_is_refused_in_order_and_frees_its_name(
    tmp_path: Path,
) -> None:
    async with housed(tmp_path) as server, server.talk() as talk:
        refused = [
            await refusal(talk, "process/start", **start("p", cwd="/tmp")),
            await refusal(talk, "process/start", **start("p")),
            await refusal(talk, "process/start", **start("p", "/no/such")),
            await refusal(talk, "process/start", **start("p", "true", cwd="file:///no/such")),
            await refusal(
                talk, "process/start", **start("p", "true", sandbox={"permissions": {"type": "x"}})
            ),
            await refusal(talk, "process/start", **start("p", "true", enforceManagedNetwork=True)),
        ]
        await talk.start("p", "echo")
        taken = await refusal(talk, "process/start", **start("p", "true"))
        await talk.closed("p")
        left = names(tmp_path / "processes")

    assert [(code, failure) for code, _, failure in refused] == [
        (-32602, "EXEC_REQUEST_INVALID"),
        (-32602, "EXEC_REQUEST_INVALID"),
        (-32603, "EXEC_START_FAILED"),
        (-32603, "EXEC_START_FAILED"),
        (-32602, "SANDBOX_REQUEST_UNFIT"),
        (-32603, "SANDBOX_UNAVAILABLE"),
    ]
    assert taken == (-32600, "process p already exists", "EXEC_PROCESS_EXISTS")
    assert len(left) == 1


async def test_a_process_runs_where_and_with_what_it_was_told(tmp_path: Path) -> None:
    policy = {
        "inherit": "core",
        "ignoreDefaultExcludes": False,
        "exclude": [],
        "set": {"A": "1"},
        "includeOnly": [],
    }
    place = tmp_path / "a b"
    place.mkdir()
    own = {"HOME": "/home/x", "SECRET_KEY": "s"}
    async with housed(tmp_path / "s", environment=own) as server, server.talk() as talk:
        uri = f"file://{tmp_path}/a%20b"
        shell = "pwd; echo $0; echo $HOME $A $SECRET_KEY."
        ran = await talk.run("p", "sh", "-c", shell, "me", cwd=uri, envPolicy=policy, env=PATH)
        named = await talk.run("q", "/bin/sh", "-c", "echo $0", arg0="other")

    assert ran == (0, f"{place}\nme\n/home/x 1 .\n".encode())
    assert named == (0, b"other\n")


async def test_a_process_runs_in_a_directory_of_any_name(tmp_path: Path) -> None:
    place = os.fsencode(tmp_path) + b"/\xff%"
    os.mkdir(place)
    async with housed(tmp_path / "s") as server, server.talk() as talk:
        ran = await talk.run("p", "pwd", cwd=uri_of(place))

    assert ran == (0, place + b"\n")


async def test_reads_are_paged_and_waited_for(tmp_path: Path) -> None:
    async with housed(tmp_path) as server, server.talk() as talk:
        await talk.start("p", "sh", "-c", "echo one; read x; echo two; read y", pipeStdin=True)
        await talk.until(lambda: talk.output("p") == b"one\n")
        waiting = await talk.ask(
            "process/read", {"processId": "p", "afterSeq": 1, "waitMs": 20_000}
        )
        status = await talk.call("environment/status")  # a read that waits keeps nobody
        assert waiting not in talk.answers
        await talk.call("process/write", processId="p", chunk=b64(b"\n"), writeId="1")
        page = await talk.answer(waiting)
        first = await talk.call("process/read", processId="p", maxBytes=1)
        nothing = await talk.call("process/read", processId="p", afterSeq=2, maxBytes=9, waitMs=1)
        unknown = await refusal(talk, "process/read", processId="q")

    assert status == {"status": "ready"}
    assert ([c["seq"] for c in page["chunks"]], page["nextSeq"]) == ([2], 3)
    assert ([c["seq"] for c in first["chunks"]], first["nextSeq"]) == ([1], 2)
    assert ([c["seq"] for c in nothing["chunks"]], nothing["nextSeq"]) == ([], 3)
    assert unknown == (-32600, "unknown process id q", "EXEC_PROCESS_UNKNOWN")


async def test_writes_are_made_once_each_and_in_order(tmp_path: Path) -> None:
    async with housed(tmp_path) as server, server.talk() as talk:
        await talk.start("p", "cat", pipeStdin=True)
        asked = [
            await talk.ask(
                "process/write", {"processId": "p", "chunk": b64(b"%d\n" % n), "writeId": str(n)}
            )
            for n in range(300)
            for _ in range(2)
        ]
        answers = [await talk.answer(number) for number in asked]
        assert await talk.call("process/closeStdin", processId="p") == {}
        await talk.closed("p")
        late = await talk.call("process/write", processId="p", chunk=b64(b"x"), writeId="z")
        strange = [
            await talk.call("process/write", processId="q", chunk="", writeId="1"),
            (await refusal(talk, "process/write", processId="p", chunk="", writeId=""))[:2],
            (await refusal(talk, "process/write", processId="p", chunk="*", writeId="1"))[0],
        ]

    assert answers == [{"status": "accepted"}] * 600
    assert talk.output("p") == b"".join(b"%d\n" % n for n in range(300))
    assert late == {"status": "stdinClosed"}
    assert strange == [
        {"status": "unknownProcess"},
        (-32602, "writeId must not be empty"),
        -32602,
    ]


async def test_without_a_pipe_there_is_no_input(tmp_path: Path) -> None:
    async with housed(tmp_path) as server, server.talk() as talk:
        await talk.start("p", "cat")
        answer = await talk.call("process/write", processId="p", chunk=b64(b"x"), writeId="1")
        await talk.closed("p")

    assert answer == {"status": "stdinClosed"}
    assert talk.output("p") == b""


async def test_signals_reach_the_group_and_nobody_minds_if_it_is_gone(tmp_path: Path) -> None:
    async with housed(tmp_path) as server, server.talk() as talk:
        await talk.start("p", "sleep", "60")
        await talk.start("q", "sleep", "60")
        await talk.start("r", "sleep", "60")
        answers = [
            await talk.call("process/signal", processId="p", signal="interrupt"),
            await talk.call("process/signal", processId="q", signal="TERM"),
            await talk.call("process/kill", processId="r", signal="SIGUSR1"),
            await talk.call("process/signal", processId="none", signal="interrupt"),
        ]
        for name in "pqr":
            await talk.closed(name)
        odd = await refusal(talk, "process/signal", processId="p", signal="wink")
        statuses = [n["exitCode"] for name in "pqr" for n in talk.of(name) if "exitCode" in n]

    assert answers == [{}] * 4
    assert statuses == [128 + signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGUSR1]
    assert odd[0] == -32602


async def test_what_is_terminated_is_closed_even_if_a_stranger_holds_its_output(
    tmp_path: Path,
) -> None:
    async with housed(tmp_path) as server, server.talk() as talk:
        await talk.start("p", "sh", "-c", "setsid sleep 5 & echo $!; exec sleep 60")
        await talk.until(lambda: bool(talk.output("p")))
        first = await talk.call("process/terminate", processId="p")
        await talk.closed("p")
        second = await talk.call("process/terminate", processId="p")
        os.kill(int(talk.output("p")), signal.SIGKILL)

    assert (first, second) == ({"running": True}, {"running": False})
    assert [n["exitCode"] for n in talk.of("p") if "exitCode" in n] == [137]


@pytest.mark.promise("X6")
async def test_a_start_that_is_terminated_gives_its_name_to_a_newer_one(tmp_path: Path) -> None:
    async with housed(tmp_path) as server, server.talk() as talk:
        # All in one go: the start has begun, and is not done, when the others arrive.
        asked = [
            await talk.ask("process/start", start("p", "sleep", "60")),
            await talk.ask("process/read", {"processId": "p"}),
            await talk.ask("process/write", {"processId": "p", "chunk": "", "writeId": "1"}),
            await talk.ask("process/terminate", {"processId": "p"}),
            await talk.ask("process/start", start("p", "sh", "-c", "echo new")),
        ]
        await talk.until(lambda: set(asked) <= talk.answers.keys())
        said = [talk.answers[number] for number in asked]
        await talk.closed("p")
        await until(lambda: len(names(tmp_path / "processes")) == 1)

    assert said[0]["error"]["message"] == "process p start was cancelled"
    assert said[1]["error"]["message"] == "process id p is starting"
    assert said[2]["result"] == {"status": "starting"}
    assert said[3]["result"] == {"running": True}
    assert said[4]["result"] == {"processId": "p", "sandboxType": "none"}
    assert talk.output("p") == b"new\n"


async def test_a_terminal_has_a_size_that_changes(tmp_path: Path) -> None:
    async with housed(tmp_path) as server, server.talk() as talk:
        await talk.start("p", "sh", "-c", "stty size; read x; stty size", tty=True)
        await talk.until(lambda: b"24 80" in talk.output("p"))
        assert await talk.call("process/resize", processId="p", rows=50, cols=132) == {}
        await talk.call("process/write", processId="p", chunk=b64(b"\n"), writeId="1")
        await talk.closed("p")
        await talk.start("q", "true")
        refused = [
            await refusal(talk, "process/resize", processId="q", rows=1, cols=1),
            await refusal(talk, "process/resize", processId="p", rows=0, cols=1),
        ]

    assert b"50 132" in talk.output("p")
    assert {n["stream"] for n in talk.of("p") if "stream" in n} == {"pty"}
    assert [code for code, _, _ in refused] == [-32600, -32602]


async def test_processes_are_listed(tmp_path: Path) -> None:
    async with housed(tmp_path) as server, server.talk() as talk:
        await talk.run("done", "sh", "-c", "exit 4")
        await talk.start("runs", "sleep", "60", tty=True)
        listed = (await talk.call("process/list"))["processes"]

    known = [
        (p["processId"], p["argv"], p["tty"], p["exited"], p["exitCode"], p["closed"])
        for p in listed
    ]
    assert known == [
        ("done", ["sh", "-c", "exit 4"], False, True, 4, True),
        ("runs", ["sleep", "60"], True, False, None, False),
    ]
    assert all(p["startedAtMs"] > 0 for p in listed)
    # The number of a process that was reaped may be that of another by now.
    assert [p["pid"] > 0 for p in listed] == [False, True]


def spoil_first_record(state: Path) -> None:
    (index,) = state.glob("processes/*/index")
    data = bytearray(index.read_bytes())
    data[RECORD_BYTES] ^= 1
    index.write_bytes(data)


async def test_what_is_damaged_on_the_disk_is_named_and_harms_nobody_else(tmp_path: Path) -> None:
    script = "echo one; read line; echo two; read line; echo three"
    async with housed(tmp_path, leave=True) as server, server.talk() as talk:
        session = talk.session
        await talk.start("p", "sh", "-c", script, pipeStdin=True)
        await talk.until(lambda: talk.output("p") == b"one\n")
        await talk.call("process/write", processId="p", chunk=b64(b"\n"), writeId="first")
        await talk.until(lambda: talk.output("p") == b"one\ntwo\n")
    spoil_first_record(tmp_path)

    async with housed(tmp_path) as server, server.talk(session=session) as talk:
        page = await talk.call("process/read", processId="p")
        await talk.call("process/write", processId="p", chunk=b64(b"\n"), writeId="second")
        rest = await talk.call("process/read", processId="p", afterSeq=2, waitMs=30_000)
        status, output = await talk.run("q", "echo", "q")

    assert (page["failure"], page["chunks"]) == (
        "record 1 of its output is damaged on the disk",
        [],
    )
    assert rest["chunks"][0]["chunk"] == b64(b"three\n")
    assert (status, output) == (0, b"q\n")
