"""A checkout of HEAD in which one mutation at a time is made and tested."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.mutations import Mutation
from tests.mutants.sample import tests_beyond, tests_of

ROOT = Path(__file__).parents[2]
_TEST_SECONDS = 60  # a test that takes longer hangs: it has noticed the mutation
_STAGE_SECONDS = 300.0  # what is not noticed within that counts as not noticed
_TRIES = 4  # how many tests that fail only now and then are left out

# Exit statuses of pytest, and one for a test that ran into its limit.
_NOT_THERE = 4
_NONE_COLLECTED = 5
_HANGS = -1


@dataclass(frozen=True)
class Result:
    """What became of one mutation."""

    mutation: Mutation
    noticed_by: str  # "tests of the module", "tests of the package", "time limit", or nothing
    test: str  # the test that failed, or nothing when the module could not even be imported
    seconds: float


class Stopped(Exception):
    """The check was interrupted."""


@dataclass(frozen=True)
class _Run:
    passed: bool
    test: str  # the one started last
    status: int


class Clone:
    """A checkout with an environment of its own, because tests start `holdfast` as a process."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._left_out: set[str] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._stopped = False

    def prepare(self, commit: str) -> None:
        if not (self._directory / ".git").exists():
            _call("git", "clone", "--quiet", "--shared", str(ROOT), str(self._directory), cwd=ROOT)
        _call("git", "fetch", "--quiet", "origin", commit, cwd=self._directory)
        _call("git", "checkout", "--quiet", "--force", "--detach", commit, cwd=self._directory)
        _call("git", "clean", "-dfq", cwd=self._directory)
        cache = ROOT / ".cache" / "npm"
        if cache.exists() and not (self._directory / ".cache/npm").exists():
            (self._directory / ".cache").mkdir(exist_ok=True)  # binaries that tests install once
            _call("cp", "-al", str(cache), str(self._directory / ".cache/npm"), cwd=ROOT)
        _call("make", "--silent", ".venv/.ready", ".venv/.test-tools", cwd=self._directory)

    def check(self, mutation: Mutation, *, suspect: str = "") -> Result:
        """Make the change and run tests; first the one that noticed it in an earlier run."""
        begun = time.monotonic()
        noticed_by, test = "", ""
        for tests in ([suspect] if suspect else [], tests_of(mutation.path), None):
            # The tests of the package are looked up only when those of the module pass.
            these = tests_beyond(mutation.path) if tests is None else tests
            noticed_by, test = self._notice(mutation, these)
            if noticed_by:
                break
        return Result(mutation, noticed_by, test, time.monotonic() - begun)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            if self._process is not None:
                _kill(self._process)

    def broken(self, tests: Sequence[str]) -> set[str]:
        """Of these tests, those that fail without a mutation, among the others and alone."""
        failed: list[str] = []
        while not (run := self._run(tests, failed)).passed and run.test not in {"", *failed}:
            failed.append(run.test)
        return {test for test in failed if not self._run([test]).passed}

    def leave_out(self, tests: set[str]) -> None:
        """Run these tests no more: they prove nothing."""
        self._left_out |= tests

    def _notice(self, mutation: Mutation, tests: list[str]) -> tuple[str, str]:
        """Who notices the mutation, and which test.

        A test of the package counts only when it fails again alone: one that fails now and then
        would notice everything. It is left out, and the others run again.
        """
        there = [path for path in tests if (self._directory / path.split("::")[0]).exists()]
        unsure: set[str] = set()
        while there and len(unsure) < _TRIES:
            run = self._mutated(mutation, there, unsure)
            if run.passed or (run.status == _NOT_THERE and not run.test):
                return "", ""
            if not run.test:
                return _stage(mutation, there[0]), ""  # the module cannot be imported
            sure = run.status == _HANGS or all(".py" in path for path in there)
            if sure or not self._mutated(mutation, [run.test]).passed:
                hangs = run.status == _HANGS
                return "time limit" if hangs else _stage(mutation, run.test), run.test
            unsure.add(run.test)
        return "", ""

    def _mutated(self, mutation: Mutation, tests: list[str], left_out: Iterable[str] = ()) -> _Run:
        module = self._directory / "src/holdfast" / mutation.path
        source = module.read_text(encoding="utf-8")
        module.write_text(mutation.applied(source), encoding="utf-8")
        try:
            return self._run(tests, left_out)
        finally:
            module.write_text(source, encoding="utf-8")

    def _run(self, tests: Sequence[str], left_out: Iterable[str] = ()) -> _Run:
        last = self._directory / ".cache" / "last-started"
        last.unlink(missing_ok=True)
        command = [".venv/bin/pytest", "-q", "-x", "-p", "no:cacheprovider"]
        command += ["-p", "tests.mutants.last_started", f"--timeout={_TEST_SECONDS}", *tests]
        command += [f"--deselect={test}" for test in {*left_out, *self._left_out}]
        if os.geteuid() == 0:
            # Whatever a mutated test leaves behind ends with its namespace, and the namespace
            # with this process. The shell is there to reap what is orphaned.
            command = ["sh", "-c", '"$@"; exit $?', "sh", *command]
            command = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", *command]
            command = ["setpriv", "--pdeathsig", "KILL", *command]
        output = self._directory / ".cache" / "output"
        with self._lock, output.open("wb") as file:
            if self._stopped:
                raise Stopped
            self._process = process = subprocess.Popen(
                command,
                cwd=self._directory,
                env={**os.environ, "MUTANTS_LAST_STARTED": str(last)},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            status = process.wait(_STAGE_SECONDS)
        except subprocess.TimeoutExpired:
            status = 0
            print(f"not done in {_STAGE_SECONDS:.0f} s: {' '.join(tests)}", flush=True)
        finally:
            _kill(process)
        if status and re.search(rb"\+ Timeout \+", output.read_bytes()):
            status = _HANGS
        if self._stopped:
            raise Stopped
        test = last.read_text(encoding="utf-8") if last.exists() else ""
        return _Run(status in {0, _NONE_COLLECTED}, test, status)


def _stage(mutation: Mutation, test: str) -> str:
    near = test.split("::")[0] in tests_of(mutation.path)
    return "tests of the module" if near else "tests of the package"


def _kill(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def _call(*command: str, cwd: Path) -> None:
    subprocess.run(command, cwd=cwd, check=True, stdin=subprocess.DEVNULL)
