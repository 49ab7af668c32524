"""Quarantine: tests that are known to race are run again, alone, when they fail.

`tests/quarantine.toml` lists them with a date and a reason. After a run in which tests failed,
each failed test of the list runs once more in a process of its own. The run succeeds only if
every failed test is on the list and passed the second time; a failure that is not listed fails
the run at once. `python -m tests.plugins.quarantine` prints the list and the age of each entry.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Collection, Generator, Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import pytest

LIST = Path("tests/quarantine.toml")
_BEFORE_MAX = 3
# Pytest attributes a leaked resource to the test that happens to run when it is collected.
_LEAK_WARNINGS = ("PytestUnraisableExceptionWarning", "PytestUnhandledThreadExceptionWarning")


@dataclass(frozen=True)
class Entry:
    """A test that may fail once; `test` names a function or one of its parameter sets."""

    test: str
    since: date
    reason: str

    def covers(self, nodeid: str) -> bool:
        return self.test in {nodeid, nodeid.partition("[")[0]}


def parse(text: str) -> list[Entry]:
    """Read the list; raises ValueError for an entry without id, date or reason."""
    listed = tomllib.loads(text)
    if unknown := sorted(listed.keys() - {"test"}):
        raise ValueError(f"unknown keys in the quarantine list: {', '.join(unknown)}")
    entries: list[Entry] = []
    for row in listed.get("test", []):
        match row:
            case {"id": str(test), "since": date() as since, "reason": str(reason), **rest} if (
                test and reason and not rest and type(since) is date  # not a datetime
            ):
                entries.append(Entry(test, since, reason))
            case _:
                raise ValueError(f"a quarantined test needs an id, a date and a reason: {row}")
    return entries


def read(root: Path) -> list[Entry]:
    """The list of the tests below `root`; empty if there is no list."""
    path = root / LIST
    return parse(path.read_text(encoding="utf-8")) if path.exists() else []


def rendered(entries: Collection[Entry], *, today: date) -> Iterator[str]:
    """The number of entries, then one line per entry, oldest first."""
    yield f"quarantined tests: {len(entries)}"
    for entry in sorted(entries, key=lambda entry: (entry.since, entry.test)):
        days = (today - entry.since).days
        yield f"  for {days} day{'' if days == 1 else 's'}: {entry.test} ({entry.reason})"


@dataclass
class _Record:
    """Failed tests with their error text, and the tests that ran before them in that process."""

    errors: dict[str, str] = field(default_factory=dict)
    before: dict[str, list[str]] = field(default_factory=dict)
    ran: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def note(self, report: pytest.TestReport) -> None:
        ran = self.ran[getattr(report, "worker_id", "")]
        if not ran or ran[-1] != report.nodeid:
            ran.append(report.nodeid)
        if report.failed:
            self.errors.setdefault(report.nodeid, report.longreprtext)
            self.before.setdefault(report.nodeid, ran[-1 - _BEFORE_MAX : -1])

    def leak_reports(self) -> Iterator[str]:
        """For each failure by a leaked resource, the tests that may have leaked it."""
        for nodeid, error in sorted(self.errors.items()):
            if any(word in error for word in _LEAK_WARNINGS):
                yield f"{nodeid} failed because an earlier test left something open. Before it ran:"
                yield from (f"  {each}" for each in self.before[nodeid])


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # the xdist controller receives every report
        try:
            entries = read(config.rootpath)
        except ValueError as error:
            raise pytest.UsageError(f"{LIST}: {error}") from error
        config.pluginmanager.register(_Quarantine(entries))


class _Quarantine:
    """Decides after the summary how a run with failures ended."""

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = entries
        self._record = _Record()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._record.note(report)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        yield
        if session.exitstatus != pytest.ExitCode.TESTS_FAILED:
            return
        terminal = session.config.pluginmanager.get_plugin("terminalreporter")
        assert isinstance(terminal, pytest.TerminalReporter)
        failed = sorted(self._record.errors)
        listed = [nodeid for nodeid in failed if self._is_listed(nodeid)]
        passed: list[str] = []
        for nodeid in listed:
            again = _run_again(session.config, nodeid)
            if again.returncode == 0:
                passed.append(nodeid)
            else:
                terminal.section(f"FAILED AGAIN, ALONE: {nodeid}", red=True, bold=True)
                terminal.write(again.stdout)
        for line in self._record.leak_reports():
            terminal.write_line(line, yellow=True)
        self._summarize(terminal, passed, unlisted=sorted(set(failed) - set(listed)))
        # A collection error fails the run without a failed test, so `failed` may be empty.
        if failed and passed == failed:
            session.exitstatus = pytest.ExitCode.OK

    def _is_listed(self, nodeid: str) -> bool:
        return any(entry.covers(nodeid) for entry in self._entries)

    def _summarize(
        self, terminal: pytest.TerminalReporter, passed: list[str], *, unlisted: list[str]
    ) -> None:
        if passed:
            terminal.section("QUARANTINED TESTS THAT PASSED WHEN RUN AGAIN", yellow=True, bold=True)
        for nodeid in passed:
            terminal.write_line(f"  {nodeid}", yellow=True)
        if unlisted:
            terminal.section(f"FAILED AND NOT IN {LIST}", red=True, bold=True)
        for nodeid in unlisted:
            terminal.write_line(f"  {nodeid}", red=True)


def _run_again(config: pytest.Config, nodeid: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", nodeid]
    return subprocess.run(
        command,
        cwd=config.rootpath,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


if __name__ == "__main__":
    for each in rendered(read(Path(__file__).parents[2]), today=date.today()):
        print(each)
