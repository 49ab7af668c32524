"""A person sees to whom they agreed, and takes it back; it holds at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.app.wiring.consent import require_provider_consent
from holdfast.cli.failures import UsageWrong
from holdfast.workbench import Consent, Scope, Workbench
from holdfast.workbench.failures import ConsentRequired
from tests.cli.conversations import lines
from tests.cli.workbenches import Bench, at_bench

pytestmark = pytest.mark.promise("W12")


@pytest.fixture
def bench() -> Iterator[Bench]:
    with at_bench() as made:
        yield made


def providers(bench: Bench, *words: str) -> list[tuple[object, object]]:
    records = lines(bench.asked("consent", *words, "--json").answer.encode())
    return [(each["provider"], each["given"]) for each in records]


def test_what_is_given_is_listed_until_it_is_withdrawn(bench: Bench) -> None:
    workbench = Workbench.at(bench.project, bench.settings.state)
    assert bench.asked("consent").hint.startswith("No provider may see this project")
    assert not workbench.directory.exists(), "who only looks leaves nothing behind"

    assert providers(bench, "give", "openai/gpt-5", "--yes") == [("openai", True)]
    assert providers(bench, "give", "openai", "--yes") == [("openai", True)]
    assert providers(bench, "give", "codex", "--yes") == [("openai", True), ("codex", True)]
    listed = [line.split()[:2] for line in bench.asked("consent", "list").answer.splitlines()]
    assert listed == [["openai", "all"], ["codex", "all"]]
    require_provider_consent(workbench, "openai")
    revoked = bench.asked("consent", "revoke", "openai")

    assert revoked.answer.startswith("codex  all  ")
    assert revoked.hint.startswith("From now on nothing of this project is sent to openai.")
    with pytest.raises(ConsentRequired):
        require_provider_consent(workbench, "openai")
    require_provider_consent(workbench, "codex")
    assert bench.asked("consent", "revoke", "openai").hint == "You have not agreed to openai."


@pytest.mark.parametrize("words", [("give", "codex"), ("give", "codex", "--json")])
def test_where_nobody_can_be_asked_nobody_agrees(bench: Bench, words: tuple[str, ...]) -> None:
    done = bench.ran("consent", *words)

    assert done.returncode == 3, done.stderr
    assert providers(bench) == []


@pytest.mark.parametrize(
    "words",
    [("give",), ("revoke", ""), ("give", "/x"), ("give", "a", "b"), ("take",), ("give", "a\x1b")],
)
def test_what_has_no_meaning_is_refused(bench: Bench, words: tuple[str, ...]) -> None:
    with pytest.raises(UsageWrong):
        bench.asked("consent", *words)


def test_what_is_for_programs_is_whole_and_nobodys_name_is_obeyed(bench: Bench) -> None:
    consent = Consent(str(bench.project), "a\x1b[2J", Scope(), is_given=True, at_ms=3_600_000)
    with Workbench.at(bench.project, bench.settings.state).locked() as (handle, _):
        handle.records.consent(consent)

    assert bench.asked("consent").answer.startswith("a\\x1b[2J  all  ")
    assert lines(bench.asked("consent", "--json").answer.encode()) == [
        {
            "schema": 1,
            "type": "consent",
            "project": str(bench.project),
            "provider": "a\x1b[2J",
            "given": True,
            "at": "1970-01-01T01:00:00.000Z",
            "paths": [],
            "session": None,
        }
    ]
