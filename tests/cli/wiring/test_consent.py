"""Nothing goes to a provider before the person has agreed, and their no holds at once."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from holdfast.cli.declarations import Request
from holdfast.cli.wiring.consent import Agreed, agree, provider_of, require
from holdfast.runners import Conversation, ReadMemory
from holdfast.runners.model import RunnerCapabilities, RunnerHealth
from holdfast.runners.testing import RunnerJournal
from holdfast.workbench import Consent, Scope, Workbench
from holdfast.workbench.failures import ConsentRequired
from tests.cli.workbenches import Bench, at_bench

pytestmark = [pytest.mark.anyio, pytest.mark.promise("W12")]
AGREED = Request("ask", given=(("--consent", "True"),))


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


def test_a_rehearsal_sends_nothing_and_needs_no_word(bench: Bench) -> None:
    agree(workbench(bench), provider_of("rehearsal", {}), Request("ask"))

    assert not workbench(bench).directory.exists()


def test_without_a_word_it_is_refused_and_with_one_it_holds(bench: Bench) -> None:
    for request in (Request("ask"), Request("ask", is_json=True)):
        with pytest.raises(ConsentRequired) as caught:
            agree(workbench(bench), "codex", request)
        assert caught.value.kind.exit_status == 3

    agree(workbench(bench), "codex", AGREED)
    agree(workbench(bench), "codex", Request("ask"))
    require(workbench(bench), "codex")


def test_one_project_speaks_for_no_other(bench: Bench) -> None:
    agree(workbench(bench), "codex", AGREED)
    other = bench.home / "other"
    other.mkdir()

    with pytest.raises(ConsentRequired):
        require(Workbench.at(other, bench.settings.state), "codex")


async def test_nothing_is_launched_once_it_is_withdrawn(bench: Bench) -> None:
    agree(workbench(bench), "codex", AGREED)
    launches = Launches()
    runner = Agreed(launches, workbench(bench))
    assert (runner.name, runner.capabilities) == ("codex", RunnerCapabilities())
    assert await runner.health() == RunnerHealth(True)

    withdrawn = Consent(str(bench.project), "codex", Scope(), is_given=False, at_ms=1)
    with workbench(bench).locked() as (handle, _):
        handle.records.consent(withdrawn)
    with pytest.raises(ConsentRequired):
        async with runner.converse("thread", RunnerJournal()):
            pass

    assert launches.count == 0
