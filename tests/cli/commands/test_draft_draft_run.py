"""A command in a draft: as anywhere, but for the project, which stays as it is."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.cli.planes import started_for
from tests.cli.pretending import on_terminal
from tests.cli.running import COMMAND, environment
from tests.cli.workbenches import Bench, at_bench, needs_place

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def bench() -> Iterator[Bench]:
    with at_bench() as made:
        (made.project / "d").mkdir()
        (made.project / "a").write_text("one\n")
        yield made


def causes(bench: Bench) -> list[str]:
    """The causes of the revisions of the newest draft."""
    first = bench.asked("draft", "list", "--json").answer.splitlines()[0]
    return [each["cause"] for each in json.loads(first)["revisions"]]


def running(bench: Bench, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, "draft", "run", "--", *words],
        env=environment(bench.home),
        cwd=bench.project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.promise("W1")
def test_it_runs_at_the_projects_own_path_and_the_project_stays(bench: Bench) -> None:
    needs_place(bench)
    script = 'read x; echo "$x" >> a; pwd; cat a; echo err >&2; exit 7'
    done = bench.ran("draft", "run", "--", "sh", "-c", script, stdin=b"two\n")

    assert (done.returncode, done.stdout) == (7, f"{bench.project}\none\ntwo\n".encode())
    assert done.stderr == b"err\n"
    assert bench.files() == {"a": "one\n"}
    assert causes(bench) == [f"sh -c '{script}'"]


def test_it_runs_where_the_person_is(bench: Bench) -> None:
    needs_place(bench)
    for where in (bench.project / "d", bench.project):
        done = subprocess.run(
            [*COMMAND, "draft", "run", "--", "pwd"],
            env=environment(bench.home),
            cwd=where,
            capture_output=True,
            timeout=100,
            check=False,
        )
        # Before there is a draft, the directory itself would be a project.
        assert done.stdout == f"{where}\n".encode()


def test_in_a_copy_it_runs_in_the_copy_and_says_so(bench: Bench) -> None:
    bench.asked("draft", "open", "--mode", "copy")
    words = ("draft", "run", "-C", str(bench.project), "--", "sh", "-c", "pwd; echo new > b")
    with on_terminal(*words, home=bench.home) as screen:
        status, shown = screen.end()

    where = str(bench.draft)
    assert status == 0
    assert f"the command runs in {where})" in shown.replace("\n", "")
    assert shown.splitlines()[-1].startswith("(Revision 1 of draft_")
    assert (bench.files(), os.path.exists(f"{where}/b")) == ({"a": "one\n"}, True)


def test_for_a_program_its_output_comes_as_records(bench: Bench) -> None:
    done = bench.ran("draft", "run", "--json", "--", "sh", "-c", "echo out; echo new > b; exit 3")
    *output, last = [json.loads(line) for line in done.stdout.splitlines()]

    assert done.returncode == 3
    assert b"".join(base64.b64decode(each["dataBase64"]) for each in output) == b"out\n"
    assert (last["type"], last["exitCode"], last["revision"]["number"]) == ("run", 3, 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_leaves_a_revision(bench: Bench, number: signal.Signals) -> None:
    with running(bench, "sh", "-c", "echo new > b; echo ready; exec sleep 100") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.wait(timeout=60) == 128 + number

    assert len(causes(bench)) == 1
    assert "A b" in bench.asked("draft", "diff", "--stat").answer


def test_left_running_it_leaves_a_revision_and_says_how_to_see_it(bench: Bench) -> None:
    script = "trap '' INT; echo new > b; echo ready; while :; do sleep 1; done"
    with running(bench, "sh", "-c", script) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"ready\n"
        while process.poll() is None:  # two at once are one
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=8)
        assert process.returncode == 130
        told = process.stderr.read().decode()

    assert told.startswith("It is still running. holdfast logs -f sh-")
    assert len(causes(bench)) == 1
    name = told.split("holdfast stop ")[1].split()[0]
    assert bench.ran("stop", name).returncode == 0


def test_the_death_of_the_server_is_not_noticed(bench: Bench) -> None:
    needs_place(bench)
    script = "echo ready; read x; echo new > b; echo done"
    with subprocess.Popen(
        [*COMMAND, "draft", "run", "--", "sh", "-c", script],
        env=environment(bench.home),
        cwd=bench.project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"ready\n"
        (server,) = started_for(bench.home, word="exec-server")
        os.kill(server, signal.SIGKILL)
        process.stdin.write(b"go\n")
        process.stdin.close()
        assert process.stdout.read() == b"done\n"
        assert process.wait(timeout=60) == 0

    assert len(causes(bench)) == 1
    assert "A b" in bench.asked("draft", "diff", "--stat").answer


def test_what_the_person_changes_is_seen(bench: Bench) -> None:
    needs_place(bench)
    bench.ran("draft", "run", "--", "cat", "a")
    (bench.project / "a").write_text("edited\n")
    (bench.project / "b").write_text("made\n")
    done = bench.ran("draft", "run", "--", "cat", "a", "b")

    assert done.stdout == b"edited\nmade\n"


def test_nobody_inside_can_reach_what_we_keep(bench: Bench) -> None:
    needs_place(bench)
    state = bench.home / "state"
    done = bench.ran("draft", "run", "--", "ls", "-A", str(state))

    assert (done.returncode != 0, done.stdout) == (True, b"")


def test_a_project_may_have_any_name(bench: Bench) -> None:
    needs_place(bench)
    odd = bench.project / "odd\udcff\x1b[31m"
    odd.mkdir()
    done = bench.ran("draft", "run", "-C", str(odd), "--", "sh", "-c", "echo new > b; pwd")

    assert (done.returncode, done.stdout) == (0, os.fsencode(odd) + b"\n"), done.stderr
    assert list(odd.iterdir()) == []


def test_a_command_that_is_not_there(bench: Bench) -> None:
    done = bench.ran("draft", "run", "--", "no-such-command")

    assert done.returncode == 127
    assert b"no-such-command" in done.stderr


def test_what_to_run_must_be_said(bench: Bench) -> None:
    assert bench.ran("draft", "run").returncode == 2
    assert bench.asked("draft", "list").answer == ""
