"""Run the mutation check and write its result: `python -m tests.mutants.check docs/mutants.md`.

Theory of operation. Each worker has a clone of HEAD with a virtual environment of its own below
`.cache/mutants`, because tests start `holdfast` as a process and must get the mutated code there,
too. For each chosen mutation the worker writes the changed module, runs the tests of that module,
and, when they pass, those of the whole package; then it puts the module back. A mutation that no
test notices *survives*. Survivors that are right to survive stand in `accepted.toml`, each with
its reason; any other makes the check fail.

Results are kept in `.cache/mutants/results.jsonl`, so that an interrupted run goes on where it
was. A mutation that was noticed is not made again as long as its module and the file of the test
that noticed it are the same; otherwise that test runs first. A survivor is tried again when
anything has changed. At the end all tests that noticed something run without a mutation: one that
fails then has noticed nothing.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import os
import queue
import random
import signal
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from tests.mutants.clone import ROOT, Clone, Result, Stopped
from tests.mutants.mutations import Mutation
from tests.mutants.sample import choose

ACCEPTED = Path(__file__).parent / "accepted.toml"
_BELOW = ROOT / ".cache" / "mutants"


class Results:
    """The results of earlier runs and of this one, in a file of one JSON object per line."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._blobs = _blobs()
        self.now: dict[Mutation, Result] = {}
        self._suspects: dict[tuple[str, str, str], str] = {}
        self._done: dict[Mutation, Result] = {}
        for row in map(json.loads, file.read_text().splitlines() if file.exists() else ()):
            result = Result(**{**row["result"], "mutation": Mutation(**row["result"]["mutation"])})
            if result.test:
                self._suspects[result.mutation.what] = result.test
            if row["state"] == self._state(result):
                self._done[result.mutation] = result

    def take(self, mutation: Mutation) -> bool:
        """Take over the result of an earlier run, if it still holds."""
        if mutation in self._done:
            self.now[mutation] = self._done[mutation]
        return mutation in self.now

    def suspect(self, mutation: Mutation) -> str:
        """The test that noticed this mutation last, or nothing."""
        return self._suspects.get(mutation.what, "")

    def add(self, result: Result) -> int:
        """Keep a result; how many there are now."""
        row = {"state": self._state(result), "result": dataclasses.asdict(result)}
        with self._lock, self._file.open("a") as file:
            file.write(json.dumps(row) + "\n")
            self.now[result.mutation] = result
            return len(self.now)

    def _state(self, result: Result) -> str:
        """What a result depends on: the module and the test, or everything."""
        if not result.noticed_by:
            text = json.dumps(self._blobs)
        else:
            module = self._blobs.get(f"src/holdfast/{result.mutation.path}", "")
            text = module + self._blobs.get(result.test.split("::")[0], "")
        return hashlib.sha256(text.encode()).hexdigest()


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
        reason = reasons.get(it.what, "**no reason: a test is missing**")
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
    parser.add_argument("--again", action="store_true", help="do not go on with an earlier run")
    chosen = parser.parse_args()
    every = [
        m for m in choose(seed=chosen.seed, count=chosen.count) if m.path.startswith(chosen.only)
    ]
    _BELOW.mkdir(parents=True, exist_ok=True)
    results = Results(_BELOW / "results.jsonl")
    todo = [mutation for mutation in every if chosen.again or not results.take(mutation)]
    if not _run(todo, results, workers=chosen.workers):
        print("interrupted; the same command goes on from here")
        return 130
    found = [results.now[mutation] for mutation in every if mutation in results.now]
    chosen.page.write_text(page(found, seed=chosen.seed), encoding="utf-8")
    reasons = accepted()
    unexplained = [
        result.mutation
        for result in found
        if not result.noticed_by and result.mutation.what not in reasons
    ]
    for mutation in unexplained:
        print(f"no test notices: {mutation.path}:{mutation.line} {mutation.kind} {mutation.code}")
    return 1 if unexplained or len(found) < len(every) else 0


def _run(todo: list[Mutation], results: Results, *, workers: int) -> bool:
    """Check the mutations that are left; whether that was done and not interrupted."""
    commit = _git("rev-parse", "HEAD")
    clones = [Clone(_BELOW / str(number)) for number in range(workers)]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _in_threads([partial(clone.prepare, commit) for clone in clones])
        while True:
            left: queue.SimpleQueue[Mutation] = queue.SimpleQueue()
            for mutation in random.Random(0).sample(todo, len(todo)):  # neighbours fail alike
                left.put(mutation)
            _in_threads([partial(_work, clone, left, results) for clone in clones])
            todo = _unproved(clones, results)
            if not todo:
                return True
    except (KeyboardInterrupt, Stopped):
        for clone in clones:
            clone.stop()
        return False


def _work(clone: Clone, left: queue.SimpleQueue[Mutation], results: Results) -> None:
    while not left.empty():
        with suppress(queue.Empty, Stopped):
            mutation = left.get_nowait()
            result = clone.check(mutation, suspect=results.suspect(mutation))
            verdict = result.noticed_by or "SURVIVED"
            print(
                f"{results.add(result)} {verdict}: {mutation.path}:{mutation.line} "
                f"{mutation.kind} {mutation.code} ({result.seconds:.0f} s)",
                flush=True,
            )


def _unproved(clones: list[Clone], results: Results) -> list[Mutation]:
    """Mutations that were noticed by a test that fails without them, too."""
    tests = sorted({result.test for result in results.now.values() if result.test})
    broken = clones[0].broken(tests) if tests else set[str]()
    for test in sorted(broken):
        print(f"left out, because it fails without a mutation: {test}", flush=True)
    for clone in clones:
        clone.leave_out(broken)
    return [each.mutation for each in results.now.values() if each.test in broken]


def _in_threads(calls: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _blobs() -> dict[str, str]:
    """The hash of each file that results depend on: the code and the tests, not this check."""
    lines = _git("ls-tree", "-r", "HEAD", "src/", "tests/").splitlines()
    named = (line.split("\t", 1) for line in lines)
    return {path: blob for blob, path in named if not path.startswith("tests/mutants/")}


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ("git", *arguments), cwd=ROOT, check=True, stdin=subprocess.DEVNULL, capture_output=True
    )
    return done.stdout.decode().strip()


if __name__ == "__main__":
    sys.exit(main())
