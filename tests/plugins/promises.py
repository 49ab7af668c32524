"""Tie tests to the promises they prove, and say aloud which were not proved.

`@pytest.mark.promise("F7")` claims a proof, `--promise F7` runs the proofs of one promise, and
the end of every run names the promises whose proofs were skipped, and why. Tests marked `long`
stay out unless `--long` is given.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pytest

_ID = re.compile(r"[A-Z]\d+")
_CLAIM_IN_SOURCE = re.compile(r"mark\.promise\(([^)]*)\)")
_PROPERTY = "promise"


@dataclass
class _Ledger:
    """What this run has learned so far; under xdist the controller holds the whole."""

    long_left_out: int = 0
    usage_error: str = ""
    unproved: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    def note(self, promise: str, reason: str, nodeid: str) -> None:
        self.unproved.setdefault((promise, reason), set()).add(nodeid)


_LEDGER = pytest.StashKey[_Ledger]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("promises")
    group.addoption(
        "--promise",
        action="append",
        default=[],
        metavar="ID[,ID]",
        help="run only the tests that prove these promises; may be given again",
    )
    group.addoption("--long", action="store_true", help="run the tests marked long as well")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "promise(*ids): the promises that this test proves")
    config.addinivalue_line("markers", "long: takes longer than a normal run may; needs --long")
    config.stash[_LEDGER] = ledger = _Ledger()
    config.pluginmanager.register(_Listener(ledger, config.rootpath))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ledger = config.stash[_LEDGER]
    try:
        proofs = {item: _claims(item) for item in items}
        wanted = _wanted(config.getoption("promise"), claimed=set().union(*proofs.values()))
    except pytest.UsageError as error:
        if not hasattr(config, "workeroutput"):
            raise
        ledger.usage_error = str(
            error
        )  # xdist cannot bear a worker that raises: its controller will
        items.clear()
        return
    for item, claims in proofs.items():
        item.user_properties.extend((_PROPERTY, claim) for claim in sorted(claims))
    chosen = [item for item in items if not wanted or wanted & proofs[item]]
    kept = chosen
    if not config.getoption("long"):
        kept = [item for item in chosen if item.get_closest_marker("long") is None]
    ledger.long_left_out = len(chosen) - len(kept)
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker sends what it learned to its controller, which ends as the worker would have."""
    ledger = session.config.stash[_LEDGER]
    output: dict[str, object] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["promises"] = (ledger.long_left_out, ledger.usage_error)
    elif ledger.usage_error:
        session.exitstatus = pytest.ExitCode.USAGE_ERROR


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    ledger = config.stash[_LEDGER]
    if ledger.usage_error:
        terminalreporter.write_line(f"ERROR: {ledger.usage_error}", red=True)
    if ledger.unproved:
        terminalreporter.section("PROMISES NOT PROVED", red=True, bold=True)
    for (promise, reason), nodeids in sorted(ledger.unproved.items()):
        first, *others = sorted(nodeids)
        more = f" (and {len(others)} more)" if others else ""
        terminalreporter.write_line(f"{promise}: {reason} [{first}{more}]", red=True)
    if ledger.long_left_out:
        terminalreporter.write_line(
            f"{ledger.long_left_out} long tests were left out; run them with --long", yellow=True
        )


def _claims(item: pytest.Item) -> set[str]:
    """The promises that a test claims to prove; a claim that cannot be read is an error."""
    claims: set[str] = set()
    for mark in item.iter_markers("promise"):
        wrong = [claim for claim in mark.args if not _is_id(claim)]
        if wrong or mark.kwargs or not mark.args:
            raise pytest.UsageError(
                f"{item.nodeid}: a promise is marked by ids like F7, not {wrong or mark.kwargs}"
            )
        claims.update(mark.args)
    return claims


def _wanted(options: list[str], *, claimed: set[str]) -> set[str]:
    wanted = {word for option in options for word in option.split(",") if word}
    if wrong := sorted(word for word in wanted if not _is_id(word)):
        raise pytest.UsageError(f"--promise takes ids like F7, not {', '.join(wrong)}")
    if unclaimed := sorted(wanted - claimed):
        raise pytest.UsageError(f"no collected test claims to prove {', '.join(unclaimed)}")
    return wanted


def _is_id(claim: object) -> bool:
    return isinstance(claim, str) and _ID.fullmatch(claim) is not None


class _Worker(Protocol):
    """As much of an xdist worker as its controller looks at."""

    workeroutput: dict[str, object]


class _Listener:
    """Notes every claim whose proof did not run to its end, and what the workers of xdist say."""

    def __init__(self, ledger: _Ledger, root: Path) -> None:
        self._ledger = ledger
        self._root = root

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped:
            for name, claim in report.user_properties:
                if name == _PROPERTY:
                    self._ledger.note(str(claim), _reason(report), report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A module that skipped itself has no tests to ask, so its source is asked."""
        path = self._root / report.nodeid
        if report.skipped and path.is_file():
            marks = " ".join(_CLAIM_IN_SOURCE.findall(path.read_text()))
            for claim in _ID.findall(marks):
                self._ledger.note(claim, _reason(report), report.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: _Worker) -> None:
        match getattr(node, "workeroutput", {}).get("promises"):
            case (int(left_out), str(usage_error)):
                self._ledger.long_left_out = left_out
                self._ledger.usage_error = usage_error


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    expected: str | None = getattr(report, "wasxfail", None)
    if expected is not None:
        return f"expected to fail: {expected}"
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")
