"""Run the mutation check and write its result: `python -m tests.mutants.check docs/mutants.md`.

Theory of operation. Each worker has a clone of HEAD with a virtual environment of its own below
`.cache/mutants`, because tests start `holdfast` as a process and must get the mutated code there,
too. For each chosen mutation the worker writes the changed module, runs the tests of that module,
and, when they pass, those of the whole package; then it puts the module back. A mutation that no
test notices *survives*. Survivors that are right to survive stand in `accepted.toml`, each with
its reason; any other makes the check fail. Tests that already fail without a mutation are
reported and left out, for they would notice everything.
"""

from __future__ import annotations

import argparse
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.mutations import Mutation
from tests.mutants.sample import choose, tests_beyond, tests_of

ROOT = Path(__file__).parents[2]
ACCEPTED = Path(__file__).parent / "accepted.toml"
_LEAST_SECONDS = 120.0  # what hangs is noticed: a test that waits for ever fails
_FACTOR = 8  # a mutated run may take this many times as long as the same tests without mutation


@dataclass(frozen=True)
class Result:
    """What became of one mutation."""

    mutation: Mutation
    noticed_by: str  # "tests of the module", "tests of the package", "time limit", or nothing
    seconds: float


class Clone:
    """A checkout of HEAD in which one mutation at a time is made and tested."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._seconds: dict[str, float | None] = {}

    def prepare(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)
        _call("git", "clone", "--quiet", "--shared", str(ROOT), str(self._directory), cwd=ROOT)
        cache = ROOT / ".cache" / "npm"
        if cache.exists():  # the real binaries that tests install once
            (self._directory / ".cache").mkdir()
            _call("cp", "-al", str(cache), str(self._directory / ".cache/npm"), cwd=ROOT)
        _call("make", "--silent", ".venv/.ready", cwd=self._directory)

    def check(self, mutation: Mutation) -> Result:
        module = self._directory / "src/holdfast" / mutation.path
        source = module.read_text(encoding="utf-8")
        begun = time.monotonic()
        noticed_by = ""
        for name, tests in (
            ("tests of the module", tests_of(mutation.path)),
            ("tests of the package", tests_beyond(mutation.path)),
        ):
            usual = self._usual_seconds(tests)
            if usual is None:
                continue
            module.write_text(mutation.applied(source), encoding="utf-8")
            try:
                passed = self._run(tests, limit=max(_LEAST_SECONDS, usual * _FACTOR))
            finally:
                module.write_text(source, encoding="utf-8")
            if passed is None:
                noticed_by = "time limit"
            elif not passed:
                noticed_by = name
            if noticed_by:
                break
        return Result(mutation, noticed_by, time.monotonic() - begun)

    def _usual_seconds(self, tests: list[str]) -> float | None:
        """How long these tests take without a mutation; None when they fail or there are none."""
        if not tests:
            return None
        key = " ".join(tests)
        if key not in self._seconds:
            begun = time.monotonic()
            passed = self._run(tests, limit=1200) or self._run(tests, limit=1200)
            self._seconds[key] = time.monotonic() - begun if passed else None
            if not passed:
                print(f"left out, because they fail without a mutation: {key}", flush=True)
        return self._seconds[key]

    def _run(self, tests: list[str], *, limit: float) -> bool | None:
        """Whether the tests pass; None when they do not end in time."""
        there = [path for path in tests if (self._directory / path).exists()]
        command = [".venv/bin/pytest", "-q", "-x", "-p", "no:cacheprovider", *there]
        if os.geteuid() == 0:  # whatever a mutated test leaves behind ends with its namespace
            command = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", *command]
        process = subprocess.Popen(
            command,
            cwd=self._directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.wait(limit) == 0
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None


def accepted() -> dict[tuple[str, str, str], str]:
    """Mutations that may survive, by module, kind and code, each with its reason."""
    rows = tomllib.loads(ACCEPTED.read_text(encoding="utf-8")).get("mutation", [])
    return {(row["path"], row["kind"], row["code"]): row["reason"] for row in rows}


def page(results: list[Result], *, seed: int) -> str:
    """The result as a page of the documentation."""
    survivors = [result for result in results if not result.noticed_by]
    reasons = accepted()
    lines = [
        "# Mutation check",
        "",
        "Written by `make mutants`. The check changes the code in one place at a time (it deletes",
        "a statement or inverts a condition) and runs the tests of that module, then those of its",
        "package. Mutated are the host, the transactions of the workbench and `exec`. See",
        "`tests/mutants/check.py`.",
        "",
        f"Seed {seed}, {len(results)} mutations, {len(results) - len(survivors)} noticed, "
        f"{len(survivors)} survived.",
        "",
        "| noticed by | mutations |",
        "| --- | --- |",
    ]
    lines += [
        f"| {name} | {sum(result.noticed_by == name for result in results)} |"
        for name in ("tests of the module", "tests of the package", "time limit")
    ]
    lines += ["", "## Survivors", ""]
    if not survivors:
        lines.append("None.")
    else:
        lines += ["| module | mutation | code | why it may survive |", "| --- | --- | --- | --- |"]
    for result in survivors:
        it = result.mutation
        reason = reasons.get((it.path, it.kind, it.code), "**no reason: a test is missing**")
        code = it.code.replace("|", "\\|")
        lines.append(f"| `{it.path}` | {it.kind} | `{code}` | {reason} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Mutate the code and see whether a test fails.")
    parser.add_argument("page", type=Path, help="where to write the result")
    parser.add_argument("--seed", type=int, default=1, help="chooses the places (default 1)")
    parser.add_argument("--count", type=int, default=200, help="how many (default 200)")
    parser.add_argument("--only", default="", help="only modules whose path begins with this")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args()
    todo: queue.SimpleQueue[Mutation] = queue.SimpleQueue()
    every = [
        m for m in choose(seed=chosen.seed, count=chosen.count) if m.path.startswith(chosen.only)
    ]
    for mutation in every:
        todo.put(mutation)
    results: list[Result] = []
    below = ROOT / ".cache" / "mutants"

    def work(number: int) -> None:
        clone = Clone(below / str(number))
        clone.prepare()
        while True:
            try:
                mutation = todo.get_nowait()
            except queue.Empty:
                return
            result = clone.check(mutation)
            results.append(result)
            verdict = result.noticed_by or "SURVIVED"
            print(
                f"{len(results)}/{len(every)} {verdict}: {mutation.path}:{mutation.line} "
                f"{mutation.kind} {mutation.code} ({result.seconds:.0f} s)",
                flush=True,
            )

    workers = [threading.Thread(target=work, args=(number,)) for number in range(chosen.workers)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    results.sort(key=lambda result: result.mutation)
    chosen.page.write_text(page(results, seed=chosen.seed), encoding="utf-8")
    reasons = accepted()
    unexplained = [
        result.mutation
        for result in results
        if not result.noticed_by
        and (result.mutation.path, result.mutation.kind, result.mutation.code) not in reasons
    ]
    for mutation in unexplained:
        print(f"no test notices: {mutation.path}:{mutation.line} {mutation.kind} {mutation.code}")
    return 1 if unexplained or len(results) < len(every) else 0


def _call(*command: str, cwd: Path) -> None:
    subprocess.run(command, cwd=cwd, check=True, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
