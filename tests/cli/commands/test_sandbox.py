"""`holdfast sandbox`, as a person and as a program run it."""

from __future__ import annotations

import http.server
import json
import os
import random
import socketserver
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cli.planes import eventually
from tests.cli.running import COMMAND, environment
from tests.cli.sandboxes import held_back, needs_sandbox, shut


@pytest.fixture(autouse=True)
def _sandboxed() -> None:
    needs_sandbox()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    (path / "here").write_text("seen\n")
    return path


def told(done: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:  # Any: JSON
    """The record that ends standard error."""
    record: dict[str, Any] = json.loads(done.stderr.splitlines()[-1])  # as above
    return record


def test_the_streams_and_the_status_are_those_of_the_command(home: Path, project: Path) -> None:
    script = "cat here -; echo oops >&2; exit 7"
    done = shut("--", "sh", "-c", script, home=home, cwd=project, stdin=b"given")

    assert (done.returncode, done.stdout, done.stderr) == (7, b"seen\ngiven", b"oops\n")


def test_what_it_keeps_is_for_nobody_else(home: Path, project: Path) -> None:
    assert shut("--", "true", home=home, cwd=project).returncode == 0

    assert [path.stat().st_mode & 0o777 for path in (home, home / "state")] == [0o700, 0o700]


def test_nothing_can_be_changed_without_being_named(home: Path, project: Path) -> None:
    done = shut("--", "sh", "-c", "echo x > new", home=home, cwd=project)

    assert done.returncode != 0
    assert b"Read-only file system" in done.stderr
    assert os.listdir(project) == ["here"]


def test_what_is_named_can_be_changed_but_not_what_others_would_obey(
    home: Path, project: Path
) -> None:
    script = "echo x > new; mkdir -p .git; echo x > .git/hooks/post-commit; echo x > .envrc"
    done = shut("--write", ".", "--", "sh", "-c", script, home=home, cwd=project)

    assert done.returncode != 0
    assert sorted(os.listdir(project)) == ["here", "new"]


def test_secrets_of_the_environment_and_of_the_home_are_not_inside(
    home: Path, project: Path
) -> None:
    (home.parent / "secret").write_text("canary")
    done = shut(
        "--",
        "sh",
        "-c",
        f"env; cat {home.parent}/secret",
        home=home,
        cwd=project,
        API_TOKEN="canary",
        OTHER="canary",
    )

    assert b"canary" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["nosuch-program"], 127),
        (["sh", "-c", "kill -TERM $$"], 143),
        (["sh", "-c", "kill -KILL $$"], 137),
        (["true"], 0),
        (["/etc"], 126),
    ],
)
def test_every_end_has_the_status_that_a_shell_gives_it(
    words: list[str], status: int, home: Path, project: Path
) -> None:
    assert shut("--", *words, home=home, cwd=project).returncode == status


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["nosuch"], 127, "no program nosuch is found inside"),
        (["./nosuch"], 127, "no program ./nosuch is found inside"),
        (["cd", "/"], 127, "no program cd is found inside"),
        (["./here"], 126, "./here cannot be run"),
        (["/etc"], 126, "/etc cannot be run"),
        (["echo", "a  b", "$x"], 0, ""),
    ],
)
def test_a_program_that_is_not_there_is_named(
    words: list[str], status: int, said: str, home: Path, project: Path
) -> None:
    done = shut("--", *words, home=home, cwd=project, PATH="/nowhere:/usr/bin:/bin")

    assert done.returncode == status
    assert done.stdout == (b"" if status else b"a  b $x\n")
    assert done.stderr.decode().splitlines()[:1] == ([f"sandbox: {said}"] if said else [])


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"page\n")

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def page() -> Generator[int]:
    """A web server of this machine."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Page) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def test_a_host_on_the_list_is_reached_and_others_are_stopped_and_told(
    home: Path, project: Path
) -> None:
    with page() as port:
        allowed = f"127.0.0.1:{port}"
        script = (
            f"curl -sS http://{allowed}/; curl -sS http://evil.com/; curl -sS https://evil.com/"
        )
        done = shut("--net", allowed, "--", "sh", "-c", script, home=home, cwd=project)

    assert done.stdout.splitlines()[0] == b"page"
    assert done.stderr.decode().splitlines()[-2:] == [
        "sandbox: blocked evil.com:80 (not on the list; --net evil.com allows it)",
        "sandbox: blocked evil.com:443 (not on the list; --net evil.com allows it)",
    ]


def test_a_program_is_told_on_the_last_line_of_standard_error(home: Path, project: Path) -> None:
    with page() as port:
        allowed = f"127.0.0.1:{port}"
        script = f"curl -sS http://{allowed}/; curl -sS http://evil.com/ >&2; exit 3"
        done = shut("--net", allowed, "--json", "--", "sh", "-c", script, home=home, cwd=project)

    assert (done.returncode, done.stdout) == (3, b"page\n")
    record = told(done)
    record.pop("unseenPath")
    record.pop("lacks")
    assert record == {
        "schema": 1,
        "type": "sandbox",
        "exitCode": 3,
        "strength": "full",
        "readable": [str(project)],
        "writable": [],
        "allowedHosts": [allowed],
        "reached": [{"host": allowed, "count": 1}],
        "blocked": [{"host": "evil.com:80", "reason": "not on the list", "count": 1}],
        "uncounted": 0,
    }


def test_without_a_list_there_is_no_way_out_at_all(home: Path, project: Path) -> None:
    with page() as port:
        asking = ["curl", "-sS", "-m", "5", f"http://127.0.0.1:{port}/"]
        plain = subprocess.run(asking, capture_output=True, check=True)
        done = shut("--", *asking, home=home, cwd=project)

    assert plain.stdout == b"page\n"
    assert (done.returncode, done.stdout) == (7, b"")


def test_with_a_list_nothing_is_reached_but_through_the_proxy(home: Path, project: Path) -> None:
    with page() as port:
        allowed = f"127.0.0.1:{port}"
        asking = ["curl", "-sS", "-m", "5", "--noproxy", "*", f"http://{allowed}/"]
        done = shut("--net", allowed, "--", *asking, home=home, cwd=project)

    assert (done.returncode, done.stdout) == (7, b"")


@pytest.mark.promise("C20")
def test_without_a_sandbox_nothing_is_run(home: Path, project: Path) -> None:
    done = held_back(
        "none", "sandbox", "--write", ".", "--", "touch", "new", home=home, cwd=project
    )

    assert (done.returncode, done.stdout) == (126, "")
    assert "no sandbox" in done.stderr.lower()
    assert os.listdir(project) == ["here"]


def test_a_sandbox_whose_network_cannot_be_entered_runs_nothing(home: Path, project: Path) -> None:
    words = ("sandbox", "--write", ".", "--net", "a.org", "--", "touch", "new")
    done = held_back("outside", *words, home=home, cwd=project)

    assert done.returncode == 126
    assert "no way out of its network" in " ".join(done.stderr.split())
    assert os.listdir(project) == ["here"]


def test_files_that_it_was_kept_from_are_named_on_request(home: Path, project: Path) -> None:
    (project.parent / "secret").write_text("a secret")
    script = "cat here; cat ../secret; echo x > new; echo x > .envrc; kill -INT $$; exit 3"
    words = ("--explain", "--write", ".", "--", "sh", "-c", f"trap '' INT; {script}")
    told_people = shut(*words, home=home, cwd=project)
    told_programs = shut("--json", *words, home=home, cwd=project)
    plain = shut(*words[1:], home=home, cwd=project)

    assert {each.returncode for each in (told_people, told_programs, plain)} == {3}
    assert {each.stdout for each in (told_people, told_programs, plain)} == {b"seen\n"}
    secret = f"{project.parent}/secret"
    lines = [line for line in told_people.stderr.decode().splitlines() if "sandbox:" in line]
    assert lines == [
        f"sandbox: kept from {project}/.envrc (protected)",
        f"sandbox: kept from {secret} (not seen; --read {secret} shows it)",
    ]
    assert told(told_programs)["keptFrom"] == [
        {"path": f"{project}/.envrc", "reason": "protected", "count": 1},
        {"path": secret, "reason": "not seen", "count": 1},
    ]
    assert b"sandbox: kept" not in plain.stderr


def test_a_lesser_sandbox_is_announced_and_has_no_network(home: Path, project: Path) -> None:
    done = held_back("reduced", "sandbox", "--", "cat", "here", home=home, cwd=project)
    refused = held_back(
        "reduced", "sandbox", "--net", "a.org", "--", "true", home=home, cwd=project
    )
    silent = held_back("reduced", "sandbox", "--explain", "--", "true", home=home, cwd=project)

    assert (done.returncode, done.stdout) == (0, "seen\n")
    assert done.stderr.startswith("sandbox: of reduced strength, because bubblewrap does not")
    assert (refused.returncode, silent.returncode) == (126, 126)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--net", "https://a.org/x", "--", "true"], "such as a.org"),
        (["--write", "/usr", "--", "true"], "belongs to the system"),
        (["--write", "nowhere", "--", "true"], "nowhere is not a directory"),
        ([], "Missing command: put it after --"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_word(
    words: list[str], problem: str, home: Path, project: Path
) -> None:
    done = shut(*words, home=home, cwd=project)

    assert done.returncode == 2
    assert problem in " ".join(done.stderr.decode().split())


def test_a_command_line_that_is_killed_leaves_nobody_and_nothing(home: Path, project: Path) -> None:
    script = "echo $$; exec sleep 1000.5"
    process = subprocess.Popen(
        [*COMMAND, "sandbox", "--write", ".", "--", "sh", "-c", script],
        env=environment(home),
        cwd=project,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    assert ".envrc" in os.listdir(project)
    process.kill()
    process.wait()
    assert process.stdout.read() == b""  # all who had it open are gone
    process.stdout.close()

    eventually(lambda: os.listdir(project) == ["here"])


@pytest.mark.promise("X14")
@pytest.mark.parametrize("kills", [10, pytest.param(100, marks=pytest.mark.long)])
def test_kills_at_random_moments_leave_no_placeholder(
    home: Path, project: Path, kills: int
) -> None:
    chance = random.Random(3)
    for number in range(kills):
        process = subprocess.Popen(
            [*COMMAND, "sandbox", "--write", ".", "--", "sleep", "60"],
            env=environment(home),
            cwd=project,
            stderr=subprocess.DEVNULL,
        )
        if number % 2:  # while they are made, or soon after
            eventually(lambda: len(os.listdir(project)) > 1)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=chance.uniform(0.0, 0.1 if number % 2 else 1.5))
        process.kill()
        process.wait()

    eventually(lambda: os.listdir(project) == ["here"])
