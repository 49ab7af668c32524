"""A session begins in a draft if its runner, its options and its project allow it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.agent.failures import ProviderUnknown
from holdfast.app.failures import SessionOptionsInvalid, SettingInvalid
from holdfast.app.sessions import Sessions
from holdfast.app.wiring.session import begin_session, check_model, check_project
from holdfast.runners.failures import RunnerUnknown
from holdfast.workbench import Workbench
from holdfast.workbench.failures import ProjectRefused
from tests.cli.workbenches import Bench, at_bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    with at_bench() as made:
        yield made


def workbench(bench: Bench) -> Workbench:
    return Workbench.at(bench.project, bench.settings.state)


def test_a_session_is_stored_with_its_options_and_its_draft(bench: Bench) -> None:
    options = {"scenario": "/x.toml"}
    made = begin_session(
        workbench(bench), bench.settings, runner="rehearsal", options=options, title=" Do it "
    )
    second = begin_session(
        workbench(bench), bench.settings, runner="rehearsal", options={}, draft=made.draft
    )

    assert (made.runner, made.options, made.title) == ("rehearsal", options, "Do it")
    assert second.draft == made.draft
    assert Sessions(bench.settings).all() == [second, made]


@pytest.mark.parametrize(
    ("runner", "options", "failure"),
    [
        ("unknown", {}, RunnerUnknown),
        ("codex", {"effort": "high"}, SessionOptionsInvalid),
        ("native", {}, SessionOptionsInvalid),
        ("native", {"model": "no-provider"}, SessionOptionsInvalid),
        ("native", {"model": "openai/x", "effort": "much"}, SettingInvalid),
    ],
)
def test_options_that_do_not_fit_the_runner_store_nothing(
    bench: Bench, runner: str, options: dict[str, str], failure: type[Exception]
) -> None:
    with pytest.raises(failure):
        begin_session(workbench(bench), bench.settings, runner=runner, options=options)

    assert Sessions(bench.settings).all() == []


@pytest.mark.parametrize("model", ["openai/", "/x", "openai/x y", "openai/ x"])
def test_a_malformed_model_is_refused(bench: Bench, model: str) -> None:
    with pytest.raises(SessionOptionsInvalid):
        check_model(model, bench.settings)


def test_a_model_of_an_unknown_provider_is_refused(bench: Bench) -> None:
    check_model("openai/x", bench.settings)
    with pytest.raises(ProviderUnknown):
        check_model("opnai/x", bench.settings)


def test_a_project_path_must_be_text(bench: Bench) -> None:
    check_project(workbench(bench))
    renamed = bench.project.rename(bench.project.with_name("project\udcff"))
    with pytest.raises(ProjectRefused):
        check_project(Workbench.at(renamed, bench.settings.state))
