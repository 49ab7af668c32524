"""Nothing goes to a provider before the person has agreed, and their no holds at once."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from holdfast.app.wiring.consent import (
    ConsentCheckedRunner,
    provider_of,
    record_consent,
    require_provider_consent,
)
from holdfast.runners import Conversation, ReadMemory
from holdfast.runners.model import RunnerCapabilities, RunnerHealth
from holdfast.runners.testing import RunnerJournal
from holdfast.workbench import Consent, Scope, Workbench
from holdfast.workbench.failures import ConsentRequired
from tests.cli.workbenches import Bench, at_bench

pytestmark = [pytest.mark.anyio, pytest.mark.promise("W12")]


@pytest.fixture
def bench() -> Iterator[Bench]:
    with at_bench() as made:
        yield made


def workbench(bench: Bench) -> Workbench:
    return Workbench.at(bench.project, bench.settings.state)


class Launches:
    """A runner that counts how often it is launched."""

    name = "codex"
    capabilities = RunnerCapabilities()

    def __init__(self) -> None:
        self.count = 0

    async def health(self) -> RunnerHealth:
        return RunnerHealth(True)

    def converse(
        self, session: str | None, memory: ReadMemory
    ) -> AbstractAsyncContextManager[Conversation]:
        del session, memory
        return self._launched()

    @asynccontextmanager
    async def _launched(self) -> AsyncGenerator[Conversation]:
        self.count += 1
        raise StopAsyncIteration
        yield


def test_a_rehearsal_sends_nothing_and_needs_no_consent(bench: Bench) -> None:
    require_provider_consent(workbench(bench), provider_of("rehearsal", {}))

    assert not workbench(bench).directory.exists()


def test_consent_is_required_until_it_is_recorded(bench: Bench) -> None:
    with pytest.raises(ConsentRequired) as caught:
        require_provider_consent(workbench(bench), "codex")
    assert caught.value.kind.exit_status == 3

    record_consent(workbench(bench), "codex", is_given=True)
    require_provider_consent(workbench(bench), "codex")


def test_consent_for_one_project_does_not_count_for_another(bench: Bench) -> None:
    record_consent(workbench(bench), "codex", is_given=True)
    other = bench.home / "other"
    other.mkdir()

    with pytest.raises(ConsentRequired):
        require_provider_consent(Workbench.at(other, bench.settings.state), "codex")


async def test_nothing_is_launched_after_consent_is_withdrawn(bench: Bench) -> None:
    record_consent(workbench(bench), "codex", is_given=True)
    launches = Launches()
    runner = ConsentCheckedRunner(launches, workbench(bench))
    assert (runner.name, runner.capabilities) == ("codex", RunnerCapabilities())
    assert await runner.health() == RunnerHealth(True)

    withdrawn = Consent(str(bench.project), "codex", Scope(), is_given=False, at_ms=1)
    with workbench(bench).locked() as (handle, _):
        handle.records.consent(withdrawn)
    with pytest.raises(ConsentRequired):
        async with runner.converse("thread", RunnerJournal()):
            pass

    assert launches.count == 0
