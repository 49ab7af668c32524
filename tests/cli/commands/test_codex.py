"""One turn of Codex, as a person, a program and a shell see it."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.cli.pretending import (
    BEGIN,
    END,
    FOREVER,
    PATIENCE,
    answered,
    on_terminal,
    pretend,
    sent,
    turning,
)
from tests.cli.running import COMMAND, environment, holdfast
from tests.parts.codex_binary import codex_binary, codex_home
from tests.parts.model_acts import Hang, Headers, Reply, Say, add_file, run
from tests.parts.model_server import ModelServer

Acts = tuple[Mapping[str, object], ...]
HOSTILE = "a\x1b[31mb\x1b]0;c\x07d\x9b2Je\rf\x08g\u202eh\u2066i\U000e0041j\u200bk\x00l\x7f\u2028m"
UNSEEN = set("\x1b\x07\x9b\r\x08\u202e\u2066\U000e0041\u200b\x00\x7f\u2028")


def ask(
    *arguments: str, codex: Path, stdin: int | None = subprocess.DEVNULL
) -> subprocess.CompletedProcess[str]:
    return holdfast(
        "codex", "ask", *arguments, home=codex.parent, stdin=stdin, HOLDFAST_CODEX=str(codex)
    )


def records(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:  # Any: JSON
    return [json.loads(line) for line in done.stdout.splitlines()]


@contextmanager
def asking(
    *arguments: str, codex: Path, stdout: int = subprocess.PIPE
) -> Generator[subprocess.Popen[str]]:
    """A turn that goes on, with pipes to it."""
    with subprocess.Popen(
        [*COMMAND, "codex", "ask", *arguments],
        env=environment(codex.parent, HOLDFAST_CODEX=str(codex)),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_what_is_said_goes_to_one_stream_and_what_is_done_to_the_other(tmp_path: Path) -> None:
    codex = turning(
        tmp_path,
        BEGIN,
        {"say": "Let me look.", "deltas": 4},
        {"run": "/bin/bash -lc 'ls -la'"},
        {"error": "Reconnecting... 1/2", "willRetry": True},
        {"say": "Two\nlines\n"},
        END,
    )
    done = ask("Fix it", "--cwd", str(tmp_path), codex=codex)

    assert (done.returncode, done.stdout) == (0, "Let me look.\nTwo\nlines\n")
    assert done.stderr.splitlines() == [
        "  $ ls -la",
        "  ! Reconnecting... 1/2",
        'Continue: holdfast codex ask --resume thread-1 "..."',
    ]
    assert sent(tmp_path, "thread/start") == [{"cwd": str(tmp_path)}]
    assert sent(tmp_path, "turn/start")[0]["input"] == [{"type": "text", "text": "Fix it"}]


def test_text_is_shown_as_it_comes(tmp_path: Path) -> None:
    codex = turning(tmp_path, BEGIN, {"say": "Half a li", "finished": False}, FOREVER)
    with asking("go", codex=codex) as process:
        assert process.stdout is not None
        assert process.stdout.read(9) == "Half a li"


def test_options_reach_codex(tmp_path: Path) -> None:
    words = ["--model", "m", "--sandbox", "read-only", "--approval-policy", "never"]
    ask("go", *words, "--cwd", str(tmp_path), codex=turning(tmp_path, BEGIN, END))

    started = {"cwd": str(tmp_path), "model": "m", "sandbox": "read-only"}
    assert sent(tmp_path, "thread/start") == [{**started, "approvalPolicy": "never"}]


def test_a_thread_is_continued(tmp_path: Path) -> None:
    done = ask("go", "--resume", "thread-7", codex=turning(tmp_path, BEGIN, {"say": "Yes."}, END))

    assert (done.returncode, done.stdout) == (0, "Yes.\n")
    assert [params["threadId"] for params in sent(tmp_path, "turn/start")] == ["thread-7"]
    assert "--resume thread-7" in done.stderr


def test_a_thread_that_cannot_be_continued_is_named(tmp_path: Path) -> None:
    refusal = {"refuse": -32600, "message": "no rollout found"}
    done = ask(
        "go", "--resume", "x", codex=pretend(tmp_path, {"on": {"thread/resume": [[refusal]]}})
    )

    assert done.returncode == 1
    assert "Codex cannot resume x: no rollout found." in done.stderr
    assert "CLI_THREAD_REFUSED" in done.stderr


def test_the_prompt_may_be_piped_in(tmp_path: Path) -> None:
    codex = turning(tmp_path, BEGIN, END)
    prompt = tmp_path / "prompt"
    prompt.write_text("from a file\n")
    for arguments in ((), ("-",)):
        with prompt.open() as file:
            assert ask(*arguments, codex=codex, stdin=file.fileno()).returncode == 0
        assert sent(tmp_path, "turn/start")[-1]["input"][0]["text"] == "from a file\n"


def test_a_program_gets_a_record_per_line(tmp_path: Path) -> None:
    codex = turning(tmp_path, BEGIN, {"say": "Hello", "deltas": 2}, {"approve": "command"}, END)
    done = ask("--json", "go", codex=codex)
    found = records(done)

    assert (done.returncode, done.stderr) == (0, "")
    assert {record["schema"] for record in found} == {1}
    assert found[0] == {"schema": 1, "type": "thread", "thread": "thread-1"}
    deltas = [r["params"]["delta"] for r in found if r.get("method") == "item/agentMessage/delta"]
    assert "".join(deltas) == "Hello"
    (approval,) = [record for record in found if record["type"] == "approval"]
    assert (approval["decision"], approval["why"]) == ("decline", "no terminal to ask on")
    assert (approval["approval"]["kind"], approval["approval"]["command"]) == (
        "command",
        "touch it",
    )
    assert found[-1] == {
        "schema": 1,
        "type": "result",
        "status": "completed",
        "text": "Hello",
        "thread": "thread-1",
        "usage": None,
        "error": None,
    }


FAILED = {"end": "failed", "message": "no"}
FAILURES: list[tuple[dict[str, Any], int, str]] = [  # Any: scenarios are JSON
    ({"on": {"turn/start": [[BEGIN, {**FAILED, "info": "unauthorized"}]]}}, 4, "CODEX_MODEL_AUTH"),
    (
        {"on": {"turn/start": [[BEGIN, {**FAILED, "info": "usageLimitExceeded"}]]}},
        5,
        "CODEX_MODEL_QUOTA_SPENT",
    ),
    (
        {"on": {"turn/start": [[BEGIN, {**FAILED, "info": "contextWindowExceeded"}]]}},
        2,
        "CODEX_CONTEXT_EXHAUSTED",
    ),
    (
        {"on": {"turn/start": [[BEGIN, {**FAILED, "info": "serverOverloaded"}]]}},
        69,
        "CODEX_MODEL_UNAVAILABLE",
    ),
    (
        {"on": {"turn/start": [[BEGIN, {**FAILED, "info": "sandboxError"}]]}},
        126,
        "CODEX_SANDBOX_FAILED",
    ),
    (
        {"on": {"turn/start": [[BEGIN, {**FAILED, "info": "newInThisVersion"}]]}},
        1,
        "CODEX_TURN_FAILED",
    ),
    ({"on": {"turn/start": [[BEGIN, {"kill": None}]]}}, 69, "RPC_CONNECTION_LOST"),
    ({"on": {"turn/start": [[BEGIN, {"exit": 0}]]}}, 69, "RPC_CONNECTION_CLOSED"),
    ({"start": [{"stderr": "no home"}, {"exit": 3}]}, 69, "CODEX_STARTUP_FAILED"),
    ({"on": {"initialize": [[{"refuse": -32600}]]}}, 1, "CODEX_INIT_REJECTED"),
    ({"on": {"thread/start": [[{"refuse": -32600}]]}}, 1, "RPC_ERROR_RESPONSE"),
]


@pytest.mark.parametrize(("scenario", "status", "code"), FAILURES, ids=[f[2] for f in FAILURES])
def test_a_failure_has_its_status_and_its_page(
    scenario: dict[str, Any], status: int, code: str, tmp_path: Path
) -> None:
    done = ask("go", codex=pretend(tmp_path, scenario))

    assert done.returncode == status
    assert f"  {code}" in done.stderr.splitlines()


@pytest.mark.parametrize(("scenario", "status", "code"), FAILURES, ids=[f[2] for f in FAILURES])
def test_the_last_line_for_a_program_is_a_result_whatever_happens(
    scenario: dict[str, Any], status: int, code: str, tmp_path: Path
) -> None:
    done = ask("--json", "go", codex=pretend(tmp_path, scenario))
    last = records(done)[-1]

    assert (done.returncode, done.stderr) == (status, "")
    assert (last["type"], last["status"], last["error"]["code"]) == ("result", "failed", code)


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (["--codex", "/nowhere/codex", "go"], 1, "CODEX_NOT_FOUND"),
        ([" "], 2, "CLI_USAGE_WRONG"),
        (["--timeout", "soon", "go"], 2, "CLI_USAGE_WRONG"),
        (["--cwd", "/nowhere", "go"], 2, "CLI_USAGE_WRONG"),
    ],
)
def test_what_never_becomes_a_turn_is_a_result_too(
    arguments: list[str], status: int, code: str, tmp_path: Path
) -> None:
    done = ask("--json", *arguments, codex=tmp_path / "codex")
    (result,) = records(done)

    assert (done.returncode, result["type"], result["thread"]) == (status, "result", None)
    assert result["error"]["code"] == code


def test_a_connection_that_breaks_leaves_the_text_that_came(tmp_path: Path) -> None:
    cut_off = (BEGIN, {"say": "Half a sen", "finished": False}, {"sleep": 0.2}, {"kill": None})
    result = records(ask("--json", "go", codex=turning(tmp_path, *cut_off)))[-1]

    assert (result["text"], result["thread"]) == ("Half a sen", "thread-1")
    assert result["error"]["sessionId"] == "thread-1"


def test_a_turn_that_takes_too_long_is_interrupted(tmp_path: Path) -> None:
    done = ask("--timeout", "0.3", "go", codex=turning(tmp_path, BEGIN, FOREVER))

    assert done.returncode == 1
    assert "CLI_TURN_TOO_LONG" in done.stderr
    assert len(sent(tmp_path, "turn/interrupt")) == 1


def test_ctrl_c_interrupts_the_turn_in_good_order(tmp_path: Path) -> None:
    codex = turning(tmp_path, BEGIN, {"say": "Half", "finished": False}, FOREVER)
    with asking("go", codex=codex) as process:
        assert process.stdout is not None
        assert process.stdout.read(4) == "Half"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=PATIENCE)

    assert (process.returncode, output) == (130, "\n")
    assert errors.splitlines() == [
        "Interrupting the turn; Ctrl-C again leaves at once.",
        'Continue: holdfast codex ask --resume thread-1 "..."',
    ]
    assert len(sent(tmp_path, "turn/interrupt")) == 1


def test_an_interrupted_turn_is_a_result(tmp_path: Path) -> None:
    codex = turning(tmp_path, BEGIN, FOREVER)
    with asking("--json", "go", codex=codex) as process:
        assert process.stdout is not None
        while json.loads(process.stdout.readline()).get("method") != "turn/started":
            pass
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=PATIENCE)
    last = json.loads(output.splitlines()[-1])

    assert (process.returncode, errors) == (130, "")
    assert (last["type"], last["status"], last["error"]) == ("result", "interrupted", None)


@pytest.mark.parametrize(
    ("numbers", "status"), [((signal.SIGINT, signal.SIGINT), 130), ((signal.SIGTERM,), 143)]
)
def test_who_insists_leaves_at_once(
    numbers: tuple[signal.Signals, ...], status: int, tmp_path: Path
) -> None:
    deaf = {"turn/start": [[BEGIN, {"say": "Half"}, FOREVER]], "turn/interrupt": [[{"hold": None}]]}
    with asking("go", codex=pretend(tmp_path, {"on": deaf})) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "Half\n"
        assert process.stderr is not None
        for number in numbers[:-1]:
            process.send_signal(number)
            assert "Ctrl-C again" in process.stderr.readline()
        process.send_signal(numbers[-1])
        _, errors = process.communicate(timeout=PATIENCE)

    assert process.returncode == status
    assert errors == 'Continue: holdfast codex ask --resume thread-1 "..."\n'


def test_ctrl_c_before_there_is_a_turn_leaves(tmp_path: Path) -> None:
    codex = pretend(tmp_path, {"on": {"thread/start": [[{"hold": None}]]}})
    with asking("go", codex=codex) as process:
        received = tmp_path / "scenario.json.received"
        while not received.exists() or not sent(tmp_path, "thread/start"):
            select.select([], [], [], 0.02)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=PATIENCE) == ("", "")

    assert process.returncode == 130


def test_ctrl_c_is_heard_while_nobody_reads_what_is_said(tmp_path: Path) -> None:
    codex = turning(tmp_path, BEGIN, {"flood": 20_000}, FOREVER)
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)  # full after one write
    with asking("go", codex=codex, stdout=writing) as process:
        assert process.stderr is not None
        select.select([reading], [], [], PATIENCE)
        select.select([], [], [], 0.3)  # long enough to be stuck in the next write
        process.send_signal(signal.SIGINT)
        assert "Ctrl-C again" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
    os.close(reading)
    os.close(writing)


def test_a_message_that_was_too_much_at_once_is_shown_whole(tmp_path: Path) -> None:
    text = "x" * 200_000 + "."
    done = ask("go", codex=turning(tmp_path, BEGIN, {"say": text, "deltas": 50_000}, END))

    assert (done.returncode, done.stdout) == (0, f"{text}\n")


def test_a_reader_that_leaves_is_no_reason_to_complain(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    codex = turning(tmp_path, BEGIN, {"say": "Hello"}, FOREVER)
    done = subprocess.run(
        [*COMMAND, "codex", "ask", "go"],
        env=environment(tmp_path, HOLDFAST_CODEX=str(codex)),
        stdout=writing,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE,
        check=False,
    )
    os.close(writing)

    assert (done.returncode, done.stderr) == (141, b"")


def test_an_answer_that_is_not_written_is_not_a_success(tmp_path: Path) -> None:
    codex = turning(tmp_path, BEGIN, {"say": "Hello"}, END)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, "codex", "ask", "go"],
            env=environment(tmp_path, HOLDFAST_CODEX=str(codex)),
            stdout=full,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            timeout=PATIENCE,
            check=False,
        )

    assert done.returncode == 74
    assert b"CLI_OUTPUT_LOST" in done.stderr


@pytest.mark.parametrize(
    ("key", "decision", "status"),
    [("y", "accept", 0), ("a", "acceptForSession", 0), ("N", "decline", 0), ("c", "cancel", 130)],
)
def test_a_person_decides(key: str, decision: str, status: int, tmp_path: Path) -> None:
    codex = turning(tmp_path, BEGIN, {"approve": "command"}, {"say": "So be it."}, END)
    with on_terminal("codex", "ask", "go", home=tmp_path, HOLDFAST_CODEX=str(codex)) as screen:
        screen.expect("end the turn: ")
        screen.type("perhaps\n")
        screen.expect("Please answer y, a, n or c: ")
        screen.type(f"{key}\n")
        ended, shown = screen.end()

    assert ended == status
    assert answered(tmp_path) == [{"decision": decision}]
    assert shown.splitlines()[:5] == [
        "  $ touch it",
        "? Codex wants to run",
        "  | touch it",
        "  because: need it",
        "  [y] yes  [a] yes, for this session  [n] no  [c] no, and end the turn: perhaps",
    ]


def test_a_question_comes_after_what_led_to_it(tmp_path: Path) -> None:
    codex = turning(tmp_path, BEGIN, {"say": "So:"}, {"run": "ls"}, {"approve": "command"}, END)

    assert ask("go", codex=codex).stderr.splitlines()[:4] == [
        "  $ ls",
        "  $ touch it",
        "  ! declined (no terminal to ask on): run touch it",
        "  ! not run: touch it",
    ]


def test_what_was_typed_before_the_question_is_no_answer(tmp_path: Path) -> None:
    codex = turning(
        tmp_path, BEGIN, {"say": "Run ls? [y] "}, {"sleep": 0.5}, {"approve": "command"}, END
    )
    with on_terminal("codex", "ask", "go", home=tmp_path, HOLDFAST_CODEX=str(codex)) as screen:
        screen.expect("Run ls? [y] ")
        screen.type("y\n")
        screen.expect("end the turn: ")
        screen.type("n\n")
        screen.end()

    assert answered(tmp_path) == [{"decision": "decline"}]


def test_a_person_who_leaves_the_question_says_no(tmp_path: Path) -> None:
    codex = turning(tmp_path, BEGIN, {"approve": "fileChange"}, END)
    with on_terminal("codex", "ask", "go", home=tmp_path, HOLDFAST_CODEX=str(codex)) as screen:
        screen.expect("end the turn: ")
        screen.type("\x04")
        status, shown = screen.end()

    assert (status, answered(tmp_path)) == (0, [{"decision": "decline"}])
    assert "  ! declined (no answer): change files" in shown


def test_ctrl_c_at_a_question_ends_the_turn(tmp_path: Path) -> None:
    codex = turning(tmp_path, BEGIN, {"approve": "command"}, END)
    with on_terminal("codex", "ask", "go", home=tmp_path, HOLDFAST_CODEX=str(codex)) as screen:
        screen.expect("end the turn: ")
        screen.type("\x03")
        status, shown = screen.end()

    assert status == 130
    assert "Interrupting the turn" in shown
    assert answered(tmp_path) == [{"decision": "cancel"}]


def test_questions_come_one_at_a_time(tmp_path: Path) -> None:
    """Two at once: the second is asked when the first has its answer."""
    both = {"turn/start": [[BEGIN, {"approve": "command", "command": "one"}, END]]}
    second = [{"approve": "command", "command": "two"}]
    both["thread/start"] = [[{"standard": None}, {"until": "turn/start"}, *second]]
    codex = pretend(tmp_path, {"on": both})
    with on_terminal("codex", "ask", "go", home=tmp_path, HOLDFAST_CODEX=str(codex)) as screen:
        screen.expect("end the turn: ")
        first = screen.text
        assert ("| one" in first) is not ("| two" in first)
        screen.type("y\n")
        screen.expect("| two" if "| one" in first else "| one")


@pytest.mark.promise("S5")
def test_nothing_from_outside_steers_the_terminal(tmp_path: Path) -> None:
    codex = turning(
        tmp_path,
        BEGIN,
        {"say": HOSTILE, "deltas": len(HOSTILE)},
        {"run": HOSTILE},
        {"error": HOSTILE, "willRetry": True},
        {"notify": "warning", "params": {"threadId": "$thread", "message": HOSTILE}},
        {"approve": "command", "command": HOSTILE},
        {"end": "failed", "message": HOSTILE, "info": "badRequest"},
    )
    with on_terminal(
        "codex", "ask", "-v", "go", home=tmp_path, HOLDFAST_CODEX=str(codex)
    ) as screen:
        screen.expect("end the turn: ")
        screen.type("n\n")
        status, shown = screen.end()

    assert status == 2
    assert shown.count("\\x1b[31m") >= 7  # it was shown, again and again
    assert UNSEEN.intersection(shown) == set()


def test_nothing_from_outside_steers_the_terminal_that_reads_a_pipe(tmp_path: Path) -> None:
    codex = turning(tmp_path, BEGIN, {"say": HOSTILE, "deltas": 7}, {"run": HOSTILE}, END)
    done = ask("go", codex=codex)

    assert UNSEEN.intersection(done.stdout + done.stderr) == set()


@pytest.mark.anyio
async def test_a_real_turn_and_the_next_one_after_a_kill(tmp_path: Path) -> None:
    """The real Codex: a turn, its list of threads, a kill in the middle, and a resumption."""
    script: list[Reply] = [
        [Say("Let me look."), run("exit 3"), add_file("made.txt", "x")],
        [Say("Done, 日本.", deltas=3)],
        [Say("Half a sen", finished=False), Headers(), Hang()],
        [Say("Again.")],
    ]
    binary = codex_binary()
    async with ModelServer(script) as model:
        env = {**codex_home(tmp_path, model.url), **environment(tmp_path)}
        env |= {"HOLDFAST_CODEX": str(binary)}
        first = await _command(["ask", "--cwd", str(tmp_path), "--json", "First"], env)
        events = [json.loads(line) for line in first.stdout.splitlines()]
        thread = events[-1]["thread"]
        assert (first.returncode, events[-1]["text"]) == (0, "Done, 日本.")
        assert events[-1]["usage"]["total"]["totalTokens"] == 220
        assert (tmp_path / "made.txt").read_text() == "x\n"

        listed = await _command(["threads", "--cwd", str(tmp_path)], env)
        assert thread.encode() in listed.stdout
        assert b"First" in listed.stdout

        async with await anyio.open_process(
            [*COMMAND, "codex", "ask", "--resume", thread, "Second"], env=env
        ) as process:
            assert process.stdout is not None
            said = b""
            while b"Half a sen" not in said:
                said += await process.stdout.receive()
            process.kill()

        again = await _command(["ask", "--resume", thread, "Third"], env)
        assert (again.returncode, again.stdout) == (0, b"Again.\n")
        assert {"First", "Second", "Third"} <= set(model.requests[-1].texts)


async def _command(arguments: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    with anyio.fail_after(PATIENCE):
        return await anyio.run_process(
            [*COMMAND, "codex", *arguments], env=env, check=False, stdin=subprocess.DEVNULL
        )
