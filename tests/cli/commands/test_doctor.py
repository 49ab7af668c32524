"""The doctor, asked by a person and by a program."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.cli.running import environment, holdfast, short_home


@pytest.fixture
def home() -> Generator[Path]:
    with short_home() as path:
        yield path


def test_a_person_gets_a_page_that_ends_with_what_to_do(home: Path) -> None:
    done = holdfast("doctor", home=home)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Holdfast ")
    assert "  ✓ state directory" in done.stdout
    assert done.stdout.splitlines()[-1] in {
        "The arrows say what would make it better.",
        "Next: holdfast --help",
    }


def test_a_program_gets_one_object(home: Path) -> None:
    done = holdfast("doctor", "--json", home=home)
    (line,) = done.stdout.splitlines()
    report = json.loads(line)

    assert report["schema"] == 1
    assert sum(report["summary"].values()) == len(report["checks"])
    assert {check["status"] for check in report["checks"]} <= {"ok", "warning", "skipped"}
    assert all(check["remedy"] for check in report["checks"] if check["status"] == "failed")


def test_it_is_quick(home: Path) -> None:
    report = json.loads(holdfast("doctor", "--json", home=home).stdout)

    assert max(check["durationSeconds"] for check in report["checks"]) < 5.0


def test_a_promise_that_cannot_be_kept_ends_with_1(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    done = holdfast("doctor", "--json", home=file)
    status = {check["id"]: check["status"] for check in json.loads(done.stdout)["checks"]}

    assert done.returncode == 1
    assert status["state.writable"] == "failed"
    assert status["state.durable"] == "skipped"


def test_a_disk_that_forgets_is_named() -> None:
    memory = Path("/dev/shm")
    if not os.path.ismount(memory) or not os.access(memory, os.W_OK):
        pytest.skip("no tmpfs that we may write to at /dev/shm")
    done = holdfast("doctor", "--json", home=memory / "holdfast-test")
    found = {check["id"]: check for check in json.loads(done.stdout)["checks"]}

    assert done.returncode == 0
    assert found["state.durable"]["status"] == "warning"
    assert "lives in memory" in found["state.durable"]["finding"]


def test_someone_without_rights_is_told_what_to_do() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become someone else")
    done = _as_nobody([_python_for_all(), "-m", "holdfast.cli.main", "doctor", "--json"])
    found = {check["id"]: check for check in json.loads(done.stdout)["checks"]}

    assert done.returncode == 1
    assert found["state.writable"]["status"] == "failed"
    assert found["state.writable"]["remedy"] == "export HOLDFAST_HOME=/a/directory/of/yours"


def _python_for_all() -> str:
    """An interpreter that others may run too: ours may lie in root's home."""
    system = "/usr/bin/python{}.{}".format(*sys.version_info[:2])
    for python in (sys.executable, system):
        tried = _as_nobody(["/bin/sh", "-c", 'exec "$0" -c "import anyio, msgspec"', python])
        if tried.returncode == 0:
            return python
    pytest.skip("no Python that another user may run has our packages")


def _as_nobody(command: list[str]) -> subprocess.CompletedProcess[bytes]:
    nobody = pwd.getpwnam("nobody")
    return subprocess.run(
        command,
        env=environment(Path("/root"), PYTHONPATH=os.pathsep.join(filter(None, sys.path))),
        user=nobody.pw_uid,
        group=nobody.pw_gid,
        extra_groups=[],
        cwd="/",
        capture_output=True,
        check=False,
    )
