"""How well a process can be shut in is found out by doing it; otherwise nothing is run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.confine.failures import SandboxUnavailable
from holdfast.confine.policy import Strength
from holdfast.confine.restrict import landlock_version
from holdfast.confine.sandbox.bubblewrap import find_bubblewrap
from holdfast.confine.sandbox.preflight import preflight
from tests.confine.shutting import Stage, stage
from tests.parts.ordinary_user import run_tests_as_ordinary_user

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has these calls")


def _tried(here: Stage, script: str, *options: str) -> str:
    """What a fresh Python says that cannot have all that a sandbox needs."""
    directory = here.workspace.parent
    command = [sys.executable, "-m", "tests.confine.without", *options, str(directory), script]
    root = Path(__file__).parents[2]
    env = {"PYTHONPATH": f"{root}:{root / 'src'}", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60)
    return done.stdout + done.stderr


@pytest.mark.promise("C20")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("namespaces",), "reduced: ran\n"),
        (("namespaces", "full"), "refused, kind unconfined"),
        (("namespaces", "landlock"), "refused, kind unconfined"),
    ],
)
def test_what_is_missing_makes_it_lesser_or_refused_and_never_open(
    tmp_path: Path, options: tuple[str, ...], expected: str
) -> None:
    if landlock_version() < 4 and "landlock" not in options:
        pytest.skip(f"Landlock here is of version {landlock_version()}, and 4 is needed")
    here = stage(tmp_path)
    script = f"echo x > {here.outside}/target; cat {here.outside}/secret; echo ran"
    assert _tried(here, script, *options) == expected
    assert (here.outside / "target").read_text() == "target"


@pytest.mark.skipif(landlock_version() < 4, reason="Landlock is missing or too old here")
def test_the_lesser_one_protects_names_by_letting_nothing_be_made_beside_them(
    tmp_path: Path,
) -> None:
    here = stage(tmp_path)
    tries = (
        "echo x > .git/hooks/pre-commit",
        "mkdir .codex",
        "mv .git .g",
        "echo x > .git/commondir",
        "echo x > new",
        "ln .git/config second",
        "rm -r .git/hooks",
        "mv file moved",
    )
    script = "; ".join(f"({each}) 2>/dev/null && echo '{each}'" for each in tries)
    script += "; echo changed > file; echo t > $TMPDIR/x && echo ran"
    assert _tried(here, script, "namespaces") == "reduced: ran\n"
    assert (here.workspace / "file").read_text() == "changed\n"
    assert sorted(path.name for path in here.workspace.iterdir()) == [".git", "file"]


def test_here_and_now() -> None:
    found = preflight()
    assert (found.bubblewrap is not None) == (found.strength is Strength.FULL)
    assert bool(found.reasons) == (found.strength is not Strength.FULL)


def test_the_walls_are_not_looked_for_on_a_path(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable):
        find_bubblewrap((str(tmp_path / "bwrap"),))
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho --args --seccomp\n")
    (tmp_path / "bwrap").chmod(0o755)
    with pytest.raises(SandboxUnavailable):
        find_bubblewrap((str(tmp_path / "bwrap"),))


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="whoever is not root has run them all already")
def test_all_of_this_holds_for_an_ordinary_user_too() -> None:
    assert run_tests_as_ordinary_user(__file__) is None


def test_where_there_are_threads_the_attempt_is_made_apart() -> None:
    program = (
        "import threading; from holdfast.confine.sandbox.preflight import strength_within\n"
        "thread = threading.Thread(target=lambda: print(strength_within(())))\n"
        "thread.start(); thread.join(); print(strength_within(()))"
    )
    env = {"PYTHONPATH": str(Path(__file__).parents[2] / "src"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=env, timeout=60
    )
    assert (done.stdout, done.stderr) == (f"{preflight().strength}\n" * 2, "")
