"""Run the few tests that failed again, alone; who passes then has raced, and is named at the end.

A machine that is busy with other things finds races that no quiet one shows. They must be mended,
but they are no reason to refuse what everything else says is right.
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

import pytest

FAILED_MOST = 5
_BEFORE_MOST = 3
_LEFTOVERS = ("PytestUnraisableExceptionWarning", "PytestUnhandledThreadExceptionWarning")


@dataclass
class _Record:
    """Who failed, how, and who had run just before in the same process."""

    complaints: dict[str, str] = field(default_factory=dict)
    before: dict[str, list[str]] = field(default_factory=dict)
    ran: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def note(self, report: pytest.TestReport) -> None:
        ran = self.ran[getattr(report, "worker_id", "")]
        if not ran or ran[-1] != report.nodeid:
            ran.append(report.nodeid)
        if report.failed:
            self.complaints.setdefault(report.nodeid, report.longreprtext)
            self.before.setdefault(report.nodeid, ran[-1 - _BEFORE_MOST : -1])

    def is_blamed_for_others(self, nodeid: str) -> bool:
        """Whether all that is wrong is what somebody else had left to the collector."""
        return any(word in self.complaints[nodeid] for word in _LEFTOVERS)


_RECORD = pytest.StashKey[_Record]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_RECORD] = _Record()
    if not hasattr(config, "workerinput"):  # the controller of xdist hears of every test
        config.pluginmanager.register(_SecondChance(config.stash[_RECORD]))


class _SecondChance:
    """Decides anew, after the summary, how a run with few failures ended."""

    def __init__(self, record: _Record) -> None:
        self._record = record

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._record.note(report)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        yield
        if session.exitstatus != pytest.ExitCode.TESTS_FAILED:
            return
        terminal = session.config.pluginmanager.get_plugin("terminalreporter")
        assert isinstance(terminal, pytest.TerminalReporter)
        failed = sorted(self._record.complaints)
        if len(failed) > FAILED_MOST:
            terminal.write_line(
                f"{len(failed)} tests failed: too many to have raced, so none was run again",
                red=True,
            )
            return
        outcomes = {nodeid: _run_again(session.config, nodeid) for nodeid in failed}
        raced = [nodeid for nodeid, done in outcomes.items() if done.returncode == 0]
        for nodeid in sorted(set(failed) - set(raced)):
            terminal.section(f"FAILED AGAIN, ALONE: {nodeid}", red=True, bold=True)
            terminal.write(outcomes[nodeid].stdout)
        if raced:
            _name(terminal, raced, self._record)
        if raced == failed:
            session.exitstatus = pytest.ExitCode.OK


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


def _name(terminal: pytest.TerminalReporter, raced: list[str], record: _Record) -> None:
    for nodeid in raced:
        terminal.section(f"THE FIRST TIME: {nodeid}", sep="-", yellow=True)
        terminal.write_line(record.complaints[nodeid])
    terminal.section("THESE RACED: MEND THEM", red=True, bold=True)
    terminal.write_line("They failed, and passed when they were run again, alone:", red=True)
    for nodeid in raced:
        for line in _lines(nodeid, record):
            terminal.write_line(line, red=True)


def _lines(nodeid: str, record: _Record) -> Iterator[str]:
    yield f"  {nodeid}"
    if record.is_blamed_for_others(nodeid):
        yield "    not for its own fault: somebody before it left something open. Just before ran"
        yield from (f"      {each}" for each in record.before[nodeid])
