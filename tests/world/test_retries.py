"""A call that fails is made again as the policy says, in virtual time."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.failures import Failure, RetryPolicy
from holdfast.world import RetryWait, retrying
from holdfast.world.failures import DatabaseDamaged, DatabaseUnavailable
from holdfast.world.testing import SeededRandomSource
from tests.simulation.clock import VirtualTimeLoop

pytestmark = [pytest.mark.anyio, pytest.mark.promise("T5")]

POLICY = RetryPolicy(waits=((1.0, 1.0), (2.0, 2.0), (4.0, 8.0)), wait_longest=60.0)


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": lambda: VirtualTimeLoop(seed=1)}


def busy(retry_after: float | None = None) -> DatabaseUnavailable:
    return DatabaseUnavailable(path="p", reason="locked").narrow(retry_after=retry_after)


class Service:
    """Fails as the script says, then answers; notes when it was called and what was announced."""

    def __init__(self, *script: Failure | Exception) -> None:
        self.script = list(script)
        self.calls: list[float] = []
        self.news: list[tuple[float, RetryWait]] = []

    async def call(self) -> str:
        self.calls.append(anyio.current_time())
        if self.script:
            raise self.script.pop(0)
        return "answer"

    async def announce(self, news: RetryWait) -> None:
        self.news.append((anyio.current_time(), news))

    async def run(self, *, safe: bool = True, policy: RetryPolicy = POLICY) -> str:
        return await retrying(
            self.call,
            safe=safe,
            policy=policy,
            chance=SeededRandomSource(1),
            announce=self.announce,
        )


async def test_what_succeeds_is_called_once() -> None:
    service = Service()

    assert await service.run() == "answer"
    assert (service.calls, service.news) == ([0.0], [])


async def test_every_wait_is_announced_before_it_begins() -> None:
    service = Service(busy(), busy())

    assert await service.run() == "answer"
    assert service.calls == [0.0, 1.0, 3.0]
    assert service.news == [
        (0.0, RetryWait(busy(), 1.0, 1, 3)),
        (1.0, RetryWait(busy(), 2.0, 2, 3)),
    ]


async def test_the_last_failure_is_raised_with_the_number_of_tries() -> None:
    last = busy()
    service = Service(busy(), busy(), busy(), last)

    with pytest.raises(DatabaseUnavailable) as raised:
        await service.run()

    assert raised.value is last
    assert last.__notes__ == ["Tried 4 times: tried often enough."]
    assert len(service.calls) == 4
    assert 3.0 + 4.0 <= service.calls[-1] <= 3.0 + 8.0


@pytest.mark.parametrize(
    ("failure", "safe", "note"),
    [
        (DatabaseDamaged(path="p", reason="r"), True, "Tried 1 times: repeating cannot help."),
        (busy(), False, "Tried 1 times: repeating is not safe."),
        (busy(61.0), True, "Tried 1 times: asked to wait longer than allowed."),
    ],
)
async def test_what_cannot_or_must_not_be_repeated_fails_at_once(
    failure: Failure, safe: bool, note: str
) -> None:
    service = Service(failure)

    with pytest.raises(type(failure)) as raised:
        await service.run(safe=safe)

    assert raised.value.__notes__ == [note]
    assert (service.calls, service.news) == ([0.0], [])


async def test_a_wait_that_the_server_names_wins_and_zero_names_none() -> None:
    service = Service(busy(30.0), busy(0.0), busy(0.25))

    await service.run()

    assert service.calls == [0.0, 30.0, 32.0, 32.25]


async def test_waiting_can_be_cancelled() -> None:
    service = Service(busy(50.0))
    with anyio.move_on_after(5.0) as patience:
        await service.run()

    assert patience.cancelled_caught
    assert (anyio.current_time(), service.calls) == (5.0, [0.0])


async def test_what_is_no_failure_passes_through() -> None:
    service = Service(ZeroDivisionError())

    with pytest.raises(ZeroDivisionError):
        await service.run()

    assert service.calls == [0.0]


async def test_an_announcement_that_fails_ends_it() -> None:
    async def refuse(news: RetryWait) -> None:
        raise DatabaseDamaged(path="p", reason="r")

    service = Service(busy())
    with pytest.raises(DatabaseDamaged):
        await retrying(
            service.call, safe=True, policy=POLICY, chance=SeededRandomSource(1), announce=refuse
        )

    assert service.calls == [0.0]


@given(
    waits=st.lists(st.tuples(st.floats(0, 5), st.floats(5, 10)), max_size=5),
    failures=st.lists(st.none() | st.floats(0, 100), max_size=8),
    safe=st.booleans(),
)
def test_tries_are_few_and_spaced(
    waits: list[tuple[float, float]], failures: list[float | None], safe: bool
) -> None:
    """However it fails, no more calls than the policy allows, and each as late as announced."""
    service = Service(*(busy(after) for after in failures))
    policy = RetryPolicy(waits=tuple(waits), wait_longest=60.0)

    async def run() -> bool:
        try:
            return await service.run(safe=safe, policy=policy) == "answer"
        except DatabaseUnavailable:
            return False

    options = {"loop_factory": lambda: VirtualTimeLoop(seed=1)}
    answered = anyio.run(run, backend="asyncio", backend_options=options)

    assert len(service.calls) <= 1 + (len(waits) if safe else 0)
    assert len(service.news) == len(service.calls) - 1
    assert answered == (not service.script and len(service.calls) == len(failures) + 1)
    for (at, news), again in zip(service.news, service.calls[1:], strict=True):
        assert again == pytest.approx(at + news.wait)
        assert news.wait <= 60.0
