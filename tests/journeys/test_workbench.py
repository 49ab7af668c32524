"""A person and an agent work on one project, by the command alone."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from holdfast.cli.catalogue import COMMANDS
from holdfast.cli.parser import is_group
from tests.cli.pretending import on_terminal
from tests.cli.running import COMMAND, environment
from tests.cli.workbenches import Bench, at_bench, needs_place

pytestmark = pytest.mark.timeout(300)

HOSTILE = "\x1b]0;owned\x07\udcff"
FILES = 200


@pytest.fixture
def bench() -> Iterator[Bench]:
    with at_bench() as made:
        (made.project / "notes.txt").write_text("one\n")
        (made.project / "src").mkdir()
        (made.project / "src" / "main.c").write_text("int main(){}\n")
        yield made


def told(bench: Bench, *words: str) -> dict[str, object]:
    """The one object that a command prints."""
    done = bench.ran(*words, "--json")
    assert (done.returncode, done.stderr) == (0, b""), done
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


@pytest.mark.promise("W1")
@pytest.mark.promise("W3")
def test_from_open_to_discard(bench: Bench) -> None:
    needs_place(bench)
    before = bench.files()
    assert told(bench, "draft", "open")["mode"] == "overlay"
    script = "echo two >> notes.txt; rm src/main.c; echo new > made"
    assert bench.ran("draft", "run", "--", "sh", "-c", script).returncode == 0
    assert bench.files() == before
    assert bench.ran("draft", "diff", "--stat").stdout.decode() == (
        " A made  +1 -0  +\n M notes.txt  +1 -0  +\n D src/main.c  +0 -1  -\n3 paths, +2 -1\n"
    )
    assert bench.ran("publish").returncode == 3
    assert bench.files() == before

    published = told(bench, "publish", "--yes")
    after = bench.files()
    assert after == {"made": "new\n", "notes.txt": "one\ntwo\n"}
    restored = told(bench, "restore", str(published["checkpointBefore"]), "--yes")
    assert bench.files() == before
    told(bench, "restore", str(restored["checkpointBefore"]), "--yes")
    assert bench.files() == after

    bench.ran("draft", "run", "--", "sh", "-c", "echo three >> notes.txt")
    bench.ran("draft", "run", "--", "rm", "notes.txt")
    assert bench.ran("draft", "diff", "--stat").stdout.startswith(b" D notes.txt")
    assert bench.ran("draft", "undo").returncode == 0
    assert bench.ran("draft", "diff", "--stat").stdout.startswith(b" M notes.txt  +1 -0")
    assert bench.ran("draft", "discard").returncode == 3
    assert bench.ran("draft", "discard", "--yes").returncode == 0
    assert bench.ran("draft", "list").stdout == b""
    assert bench.files() == after


@pytest.mark.promise("W5")
def test_what_both_changed_waits_for_a_word(bench: Bench) -> None:
    needs_place(bench)
    bench.ran("draft", "run", "--", "sh", "-c", "echo ours > notes.txt; echo new > made")
    (bench.project / "notes.txt").write_text("theirs\n")
    failed = bench.ran("publish", "--yes")

    assert failed.returncode == 1
    assert b"CONFLICT_PUBLISHED_CHANGED" in failed.stderr
    assert b"notes.txt" in failed.stderr
    assert "made" not in bench.files()
    assert bench.ran("publish", "--yes", "--only", "made").returncode == 0
    assert bench.files()["notes.txt"] == "theirs\n"
    assert bench.ran("publish", "--yes", "--force", "notes.txt").returncode == 0
    assert bench.files()["notes.txt"] == "ours\n"


def test_every_answer_for_a_program_has_its_form(bench: Bench) -> None:
    first = told(bench, "checkpoint", "create", "-m", "first")
    asked: list[tuple[str, ...]] = [
        ("draft", "open"),
        ("draft", "list"),
        ("draft", "path"),
        ("draft", "run"),
        ("draft", "diff"),
        ("status",),
        ("checkpoint", "list"),
        ("checkpoint", "show", str(first["id"])),
        ("checkpoint", "diff", str(first["id"]), "now"),
        ("publish", "--yes"),
        ("restore", str(first["id"]), "--yes"),
        ("draft", "undo"),
        ("recover",),
        ("storage",),
        ("storage", "--prune", "--dry-run"),
        ("draft", "discard", "--yes"),
    ]
    kinds: list[object] = []
    for words in asked:
        rest = ("--", "sh", "-c", "echo two >> notes.txt") if words == ("draft", "run") else ()
        done = bench.ran(*words, "--json", *rest)
        assert (done.returncode, done.stderr) == (0, b""), (words, done)
        for line in done.stdout.splitlines():
            record = json.loads(line)
            assert record["schema"] == 1
        kinds.append(record["type"])

    assert kinds == [
        "draft",
        "draft",
        "path",
        "run",
        "diff",
        "status",
        "checkpoint",
        "checkpoint",
        "comparison",
        "publish",
        "restore",
        "undo",
        "recovery",
        "storage",
        "pruned",
        "discarded",
    ]


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (("draft", "diff"), 1, "NOT_FOUND_DRAFT"),
        (("publish", "--yes"), 1, "NOT_FOUND_DRAFT"),
        (("restore", "cp_nope"), 1, "NOT_FOUND_CHECKPOINT"),
        (("restore",), 2, "CLI_USAGE_WRONG"),
        (("draft", "diff", "/etc/passwd"), 2, "PATH_INVALID"),
        (("status", "-C", "/nowhere"), 2, "PROJECT_REFUSED"),
        (("draft", "open", "-C", "/"), 2, None),
    ],
)
def test_what_fails_has_its_status_and_its_code(
    bench: Bench, words: tuple[str, ...], status: int, code: str | None
) -> None:
    done = bench.ran(*words, "--json")
    record = json.loads(done.stdout)

    assert done.returncode == status, record
    assert code in (None, record["code"])


def test_every_page_of_help_fits_a_terminal(bench: Bench) -> None:
    own = [each for each in COMMANDS if any(option.flags[0] == "-C" for option in each.options)]
    assert len(own) > 15
    for command in [*own, *(each for each in COMMANDS if is_group(each))]:
        done = bench.ran(*command.name.split(), "--help")
        lines = done.stdout.decode().splitlines()
        assert (done.returncode, done.stderr) == (0, b"")
        assert [line for line in lines if len(line) > 88] == []
        assert "examples:" in lines


def test_names_that_would_steer_a_terminal_are_shown_harmless(bench: Bench) -> None:
    (bench.project / HOSTILE).write_text("x\n")
    bench.ran("draft", "open", "--mode", "copy")
    first = str(
        told(bench, "checkpoint", "create", "-m", HOSTILE.encode("ascii", "ignore").decode())["id"]
    )
    bench.ran(
        "draft", "run", "--", "sh", "-c", f"echo y >> '{HOSTILE[:-1]}'*; echo '{HOSTILE[:-1]}' > b"
    )
    for words in (
        ("draft", "diff"),
        ("status",),
        ("draft", "list"),
        ("checkpoint", "list"),
        ("checkpoint", "show", first),
        ("publish", "--yes"),
        ("checkpoint", "diff", first, "now"),
        ("restore", first, "--yes"),
        ("draft", "discard", "--yes"),
    ):
        with on_terminal(*words, "-C", str(bench.project), home=bench.home) as screen:
            status, shown = screen.end()
        assert (status, words, {*shown} & {"\x1b", "\x07"}) == (0, words, set())


def test_everything_that_runs_in_a_draft_can_be_stopped(bench: Bench) -> None:
    needs_place(bench)
    state = str(bench.home / "state")
    with subprocess.Popen(
        [*COMMAND, "draft", "run", "--", "sh", "-c", "echo ready; exec sleep 100"],
        env=environment(bench.home),
        cwd=bench.project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        shown = json.loads(bench.ran("stop", "--all", "--state", state, "--json").stdout)
        kinds = [(each["kind"], each["processes"]) for each in shown["found"]]
        assert ("place", 1) in kinds
        assert bench.ran("stop", "--all", "--state", state, "--yes").returncode == 0
        assert process.wait(timeout=60) != 0

    assert b"Nothing is running." in bench.ran("stop", "--all", "--state", state, "--yes").stderr
    done = bench.ran("draft", "run", "--", "cat", "notes.txt")
    assert (done.returncode, done.stdout) == (0, b"one\n")


# --- Ctrl-C at any moment ----------------------------------------------------------------------


def interrupted(bench: Bench, *words: str, after: float) -> tuple[int, str]:
    """Run a command and interrupt it after a while; how it ended, and what it said."""
    with subprocess.Popen(
        [*COMMAND, *words],
        env=environment(bench.home),
        cwd=bench.project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=after)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=100)
        return process.returncode, said.decode()


class Interrupting:
    """A project of many files, between two states, and a draft that has the second."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.chance = bench, random.Random(1)
        for number in range(FILES):
            (bench.project / "src" / f"f{number:03}").write_text(f"old {number}\n")
        self.old = bench.files()
        self.new = {name: "new\n" if "/f" in name else text for name, text in self.old.items()}
        self.first = str(told(bench, "checkpoint", "create")["id"])
        bench.ran("draft", "open", "--mode", "copy")
        script = "cd src && for f in f*; do echo new > $f; done"
        bench.ran("draft", "run", "--", "sh", "-c", script)
        self.deeds = {
            ("checkpoint", "create"): (self.old, self.old),
            ("publish", "--yes"): (self.old, self.new),
            ("restore", self.first, "--yes"): (self.new, self.old),
        }
        self.took = {words: self.timed(*words) for words in self.deeds}
        self.ends: list[int] = []

    def timed(self, *words: str) -> float:
        """How long it takes if nobody interrupts it; the draft has its changes afterwards."""
        began = time.monotonic()
        assert self.bench.ran(*words).returncode == 0
        took = time.monotonic() - began
        self.bench.ran("draft", "undo", "--to", "1")
        return took

    def interrupt(self, words: tuple[str, ...]) -> None:
        """At some moment: then all of it is done or nothing, and the next command is whole."""
        bench, (before, after) = self.bench, self.deeds[words]
        if bench.files() != before:
            back = ("publish", "--yes") if before is self.new else ("restore", self.first, "--yes")
            bench.ran("draft", "undo", "--to", "1")
            assert bench.ran(*back).returncode == 0
            bench.ran("draft", "undo", "--to", "1")
        moment = self.chance.uniform(0.3, 1.0) * self.took[words]
        status, said = interrupted(bench, *words, after=moment)
        self.ends.append(status)
        found = bench.files()
        has_begun = "runpy" not in said  # else the interpreter itself was interrupted
        assert status in (0, 130, -signal.SIGINT) or not has_begun, (words, moment, said)
        assert "holdfast/cli" not in said, said  # a trace of how far it had come
        assert found in (before, after), (words, moment, said)
        assert not [name for name in os.listdir(bench.project) if name.startswith(".holdfast")]
        assert told(bench, "status")["project"] == str(bench.project)
        assert bench.files() == found, (words, moment, said)


@pytest.mark.promise("W4")
def test_killed_in_a_publication_the_next_command_says_which_way_it_went(bench: Bench) -> None:
    interrupting = Interrupting(bench)
    (marker,) = (each / "marker.json" for each in (bench.home / "state/workbench").glob("*/"))
    for _ in range(10):
        assert bench.files() == interrupting.old
        with subprocess.Popen(
            [*COMMAND, "publish", "--yes"],
            env=environment(bench.home),
            cwd=bench.project,
            stdout=subprocess.DEVNULL,
        ) as process:
            while process.poll() is None and not marker.exists():
                pass
            process.kill()
        done = bench.ran("draft", "list")
        found = bench.files()
        assert found in (interrupting.old, interrupting.new)
        if b"An interrupted change of the project" in done.stderr:
            way = b"was finished" if found == interrupting.new else b"was undone"
            assert way in done.stderr
            return
        bench.ran("restore", interrupting.first, "--yes")
        bench.ran("draft", "undo", "--to", "1")
    pytest.fail("it was never killed at the right moment")


@pytest.mark.promise("W4")
def test_ctrl_c_at_any_moment_leaves_the_project_whole(bench: Bench) -> None:
    interrupting = Interrupting(bench)
    for words in interrupting.deeds:
        interrupting.interrupt(words)


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.promise("W4")
def test_ctrl_c_at_many_moments_leaves_the_project_whole(bench: Bench) -> None:
    interrupting = Interrupting(bench)
    for _ in range(30):
        for words in interrupting.deeds:
            interrupting.interrupt(words)
    assert 130 in interrupting.ends


@pytest.mark.promise("W7")
@pytest.mark.parametrize("most", [6, 8, 10, 12])
def test_with_too_few_file_descriptors_a_command_says_so(bench: Bench, most: int) -> None:
    """However early the limit is met, it has a name and a remedy, and never a traceback."""
    made = bench.ran("checkpoint", "create")
    assert made.returncode == 0
    script = f"ulimit -n {most}; exec {' '.join(COMMAND)} status --project {bench.project}"
    done = subprocess.run(
        ["/bin/sh", "-c", script], env=environment(bench.home), capture_output=True, check=False
    )
    said = done.stderr.decode()

    assert "Traceback" not in said
    assert done.returncode in {0, 74}
    assert done.returncode == 0 or "OPEN_FILES_EXHAUSTED" in said
    assert most > 8 or done.returncode == 74
