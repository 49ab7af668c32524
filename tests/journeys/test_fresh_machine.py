"""From a clone to a running program with one command, on a machine that has only Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.cli.running import short_home

ROOT = Path(__file__).parents[2]
PASSED_ON = ("PIP_", "UV_", "SSL_", "HTTP", "HTTPS", "NO_PROXY", "http", "no_proxy")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone of what is committed, and nothing else."""
    if not (ROOT / ".git").exists():
        pytest.skip("the sources are not a git checkout")
    command = ["git", "clone", "--quiet", str(ROOT), str(tmp_path / "clone")]
    subprocess.run(command, check=True)
    return tmp_path / "clone"


@pytest.fixture
def home() -> Generator[Path]:
    with short_home() as path:
        yield path


@pytest.mark.long
@pytest.mark.timeout(900)
def test_one_command_makes_it_run_and_the_second_time_at_once(clone: Path, home: Path) -> None:
    first = _make("run", clone, home)

    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith("Holdfast ")
    assert len(first.stderr.splitlines()) <= 3

    second = _make("run", clone, home)
    assert (second.returncode, second.stderr) == (0, "")


def test_without_a_new_enough_python_it_says_what_to_install(clone: Path, tmp_path: Path) -> None:
    tools = _tools(tmp_path)
    (tools / "python3").write_text("#!/bin/sh\necho 3.9.1\nexit 1\n")
    (tools / "python3").chmod(0o755)

    done = _make("run", clone, tmp_path, PATH=str(tools))

    assert done.returncode == 2
    assert "Holdfast needs Python 3.11 or newer, and python3 is" in done.stderr
    assert "apt install python3" in done.stderr
    assert not (clone / ".venv").exists()


def test_without_any_python_it_says_so(clone: Path, tmp_path: Path) -> None:
    done = _make("run", clone, tmp_path, PATH=str(_tools(tmp_path)))

    assert done.returncode == 2
    assert "no python3 was found" in done.stderr


def test_without_the_venv_module_it_names_the_package(clone: Path, tmp_path: Path) -> None:
    tools = _tools(tmp_path)
    python = tools / "python3"
    python.write_text(
        f'#!/bin/sh\ncase "$*" in *ensurepip*) exit 1;; esac\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)

    done = _make("run", clone, tmp_path, PATH=str(tools))

    version = "python{}.{}-venv".format(*sys.version_info[:2])
    assert done.returncode == 2
    assert f"sudo apt install {version}" in done.stderr


def test_without_a_network_it_says_so_and_tries_again_next_time(
    clone: Path, tmp_path: Path
) -> None:
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_NO_INDEX": "1"}
    nowhere |= {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": str(tmp_path), "PIP_RETRIES": "0"}
    done = _make("run", clone, tmp_path, PYTHON=sys.executable, **nowhere)

    assert done.returncode == 2
    assert "the locked packages could not be installed" in done.stderr
    assert "Is the network there?" in done.stderr
    assert not (clone / ".venv/.ready").exists()


def _make(target: str, clone: Path, home: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run make with a minimal environment, but with this machine's way to its registry."""
    registry = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), **registry, **more}
    return subprocess.run(
        [shutil.which("make") or "make", "--no-print-directory", target],
        cwd=clone,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def _tools(tmp_path: Path) -> Path:
    """A directory with all that the bootstrap needs, except Python."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "dirname", "pwd", "cat", "id", "rm", "sed", "awk", "tail", "make"):
        found = shutil.which(name)
        if found:
            (tools / name).symlink_to(found)
    return tools
