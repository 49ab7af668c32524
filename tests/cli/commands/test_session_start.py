"""A session begins in a draft, with a runner that the person has chosen and agreed to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.app.failures import SettingInvalid
from holdfast.app.sessions import Sessions
from holdfast.app.wiring.consent import require_provider_consent
from holdfast.cli.commands.session_start import (
    ensure_consent,
    new_session,
    resumed_session,
    session_for,
)
from holdfast.cli.declarations import Request
from holdfast.cli.failures import UsageWrong
from holdfast.runners.failures import RunnerUnknown
from holdfast.workbench import Workbench
from holdfast.workbench.failures import ConsentRequired, ProjectRefused
from tests.cli.workbenches import Bench, at_bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    with at_bench() as made:
        yield made


def request(bench: Bench, **given: str) -> Request:
    """What a program asks about the project of a bench."""
    given = {"runner": "rehearsal"} | given
    flags = tuple((f"--{name}", value) for name, value in given.items())
    return Request("ask", is_json=True, given=(("--project", str(bench.project)), *flags))


def test_each_has_a_draft_of_its_own_unless_one_is_named(bench: Bench) -> None:
    first = new_session("  Do it \n", request(bench), bench.settings)
    second = new_session("x" * 999, request(bench), bench.settings)
    third = new_session("", request(bench, draft=first.draft), bench.settings)

    assert (first.project, first.runner, first.title) == (str(bench.project), "rehearsal", "Do it")
    assert len(second.title) == 200
    assert first.draft != second.draft
    assert third.draft == first.draft


def test_one_that_is_named_is_taken_up_with_what_it_was_told(bench: Bench) -> None:
    begun = new_session("", request(bench, scenario="x.toml"), bench.settings)

    assert session_for("", request(bench, session=begun.id), bench.settings) == begun
    assert resumed_session(begun, request(bench), bench.settings) == begun
    assert begun.options["scenario"].endswith("/x.toml")
    assert begun.options["scenario"].startswith("/")


@pytest.mark.parametrize(
    ("given", "failure"),
    [
        ({"runner": "nobody"}, RunnerUnknown),
        ({"scenario": "\udcff.toml"}, UsageWrong),
        ({"runner": "native"}, UsageWrong),
        ({"runner": "native", "model": "no-provider"}, UsageWrong),
        ({"runner": "codex", "effort": "high"}, UsageWrong),
        ({"runner": "native", "model": "openai/x", "effort": "much"}, SettingInvalid),
        ({"runner": "native", "model": "openai/x"}, ConsentRequired),
        ({"runner": "codex"}, ConsentRequired),
    ],
)
def test_what_is_refused_leaves_nothing_behind(
    bench: Bench, given: dict[str, str], failure: type[Exception]
) -> None:
    with pytest.raises(failure):
        new_session("", request(bench, **given), bench.settings)

    assert list(Sessions(bench.settings).all()) == []


def test_a_project_whose_path_is_no_text_is_refused_before_anything_is_made(bench: Bench) -> None:
    there = Bench(bench.home, bench.project.rename(bench.project.with_name("project\udcff")))

    with pytest.raises(ProjectRefused):
        new_session("", request(there), there.settings)
    assert Sessions(there.settings).all() == []
    assert there.asked("draft", "list", "--json").answer == ""


@pytest.mark.promise("W12")
def test_consent_is_refused_without_an_answer_and_recorded_with_one(bench: Bench) -> None:
    workbench = Workbench.at(bench.project, bench.settings.state)
    for request in (Request("ask"), Request("ask", is_json=True)):
        with pytest.raises(ConsentRequired) as caught:
            ensure_consent(workbench, "codex", request)
        assert caught.value.kind.exit_status == 3

    ensure_consent(workbench, "codex", Request("ask", given=(("--consent", "True"),)))
    ensure_consent(workbench, "codex", Request("ask"))
    require_provider_consent(workbench, "codex")
