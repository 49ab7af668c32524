"""Every wait has a deadline of its own; tried in time that is not spent."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

import anyio
import pytest

from holdfast.agent.failures import AnswerCut, AnswerTooLarge, ModelStalled, ModelUnreachable
from holdfast.agent.model import RetryScheduled
from holdfast.agent.providers.http_provider import ANSWER_BYTES_MAX, Deadlines
from holdfast.agent.providers.http_request import How, Lost, Request
from holdfast.agent.providers.registry import Format
from holdfast.agent.testing import CHOICE, PROMPT, SHORTEST, WHOLE, heard
from holdfast.failures import Failure, RetryPolicy
from tests.agent.asked import NEVER, Delayed, models_at
from tests.parts.provider_frames import frames
from tests.simulation.clock import VirtualTimeLoop

DEADLINES = Deadlines(connect=1.0, first_byte=10.0, between_chunks=5.0, total=30.0)
FORM = Format.MESSAGES
URL = "https://there.example/v1"
SLOWLY = RetryPolicy(waits=((50.0, 50.0),))
EVENTS = frames(FORM, SHORTEST)


def passed(work: Coroutine[Any, Any, Any]) -> float:  # Any: as asyncio declares it
    """Run in a time of its own, and say how much of it has passed."""
    loop = VirtualTimeLoop(seed=1)
    try:
        loop.run_until_complete(work)
        return loop.now
    finally:
        loop.close()


async def ask(wait: float, chunks: Sequence[tuple[float, bytes]]) -> None:
    web = Delayed((wait, chunks))
    async with models_at(URL, FORM, policy=NEVER, deadlines=DEADLINES, web=web) as models:
        try:
            found = await heard(models)
            assert found.text == SHORTEST.say
        finally:
            assert web.closed == (wait < DEADLINES.first_byte)


@pytest.mark.promise("A9")
@pytest.mark.parametrize(
    ("wait", "chunks", "stage", "seconds"),
    [
        (11.0, [], "no first byte", 10.0),
        (9.0, [(2.0, EVENTS[0])], "no first byte", 10.0),
        (0.0, [(0.0, EVENTS[0]), (6.0, EVENTS[1])], "silence", 5.0),
        (0.0, [(0.0, b": still here\n\n"), (6.0, b"")], "silence", 5.0),
    ],
)
def test_who_is_silent_for_too_long_is_not_waited_for(
    wait: float, chunks: list[tuple[float, bytes]], stage: str, seconds: float
) -> None:
    async def main() -> None:
        with pytest.raises(ModelStalled) as raised:
            await ask(wait, chunks)
        assert (raised.value.stage, raised.value.seconds) == (stage, seconds)
        assert raised.value.retryable

    assert passed(main()) == pytest.approx(seconds)


def test_an_answer_that_never_ends_is_ended() -> None:
    """Not again: it would take as long the next time."""

    async def main() -> None:
        with pytest.raises(ModelStalled) as raised:
            await ask(0.0, [(4.0, b": still here\n\n")] * 100)
        assert (raised.value.stage, raised.value.retryable) == ("the whole answer", False)

    assert passed(main()) == pytest.approx(30.0)


def test_who_is_slow_but_goes_on_is_heard() -> None:
    slowly = [(4.0, event) for event in EVENTS[:-2]] + [(0.0, event) for event in EVENTS[-2:]]

    assert passed(ask(0.0, slowly)) == pytest.approx(4.0 * len(EVENTS[:-2]))


def test_a_stream_without_its_end_is_no_answer() -> None:
    async def main() -> None:
        with pytest.raises(AnswerCut):
            await ask(0.0, [(0.0, event) for event in EVENTS[:-1]])

    passed(main())


@pytest.mark.promise("A9")
@pytest.mark.parametrize("form", list(Format))
def test_a_hang_at_every_boundary_leaves_the_same_answer(form: Format) -> None:
    """After any number of events: who falls silent is left, and asked again."""
    events = frames(form, WHOLE)
    counts = range(len(events) - (2 if form is Format.CHAT else 0))
    whole = (0.0, [(0.0, event) for event in events])
    scripts = [
        script
        for count in counts
        for script in ((0.0, [*[(0.0, event) for event in events[:count]], (1e6, b"")]), whole)
    ]

    async def main() -> None:
        async with models_at(URL, form, deadlines=DEADLINES, web=Delayed(whole)) as models:
            expected = await heard(models)
        web = Delayed(*scripts)
        async with models_at(URL, form, deadlines=DEADLINES, web=web) as models:
            for count in counts:
                found = await heard(models)
                [wait] = [each for each in found.pieces if isinstance(each, RetryScheduled)]
                assert wait.failure["code"] == "MODEL_STALLED", count
                assert found.last == expected.last, count
                assert found.text == expected.text, count
        assert web.closed == len(scripts)

    assert passed(main()) == pytest.approx(10.0 + 5.0 * (len(counts) - 1))


@pytest.mark.parametrize(
    "chunks",
    [
        [(0.0, b"data: " + b"x" * 2**20)] * 20,
        [(0.0, b": " + b"x" * 2**20 + b"\n\n")] * (ANSWER_BYTES_MAX // 2**20),
    ],
)
def test_what_has_no_bounds_is_not_held(chunks: list[tuple[float, bytes]]) -> None:
    async def main() -> None:
        with pytest.raises(AnswerTooLarge):
            await ask(0.0, chunks)

    passed(main())


@pytest.mark.parametrize("after", [0.5, 2.5, 20.5])
def test_it_can_be_cancelled_at_any_time(after: float) -> None:
    """Before it begins, in the middle of it, and where it stands still."""

    async def main() -> None:
        web = Delayed((1.0, [(1.0, EVENTS[0]), (1.0, EVENTS[1]), (100.0, EVENTS[2])]))
        deadlines = Deadlines(first_byte=100.0, between_chunks=1000.0, total=1000.0)
        async with models_at(URL, FORM, deadlines=deadlines, web=web) as models:
            with anyio.move_on_after(after) as scope:
                await heard(models)
            assert scope.cancelled_caught
            assert web.closed == (after > 1.0)

    assert passed(main()) == pytest.approx(after)


def test_a_wait_before_the_next_try_can_be_cancelled() -> None:
    async def main() -> None:
        web = Delayed((0.0, []), (0.0, []))
        async with models_at(URL, FORM, policy=SLOWLY, web=web) as models:
            with anyio.move_on_after(5.0) as scope:
                async with models.answering(CHOICE, PROMPT) as batches:
                    async for _ in batches:
                        pass
            assert scope.cancelled_caught

    assert passed(main()) == pytest.approx(5.0)


def test_what_it_raises_shows_no_key() -> None:
    """What hangs on a failure is told with it: nothing does."""

    async def main() -> None:
        with pytest.raises(Failure) as raised:
            await ask(0.0, [])
        assert raised.value.__cause__ is None
        assert raised.value.__context__ is None

    passed(main())


class Unheard:
    """A provider of whom nothing comes."""

    def __init__(self, lost: Lost) -> None:
        self._lost = lost
        self.limits: list[float] = []

    async def ask(self, request: Request, *, connect: float, until: float) -> Lost:
        self.limits.append(connect)
        return self._lost

    async def close(self) -> None:
        """Nothing is kept."""


async def asked(lost: Lost) -> Failure:
    web = Unheard(lost)
    async with models_at(URL, FORM, policy=NEVER, deadlines=DEADLINES, web=web) as models:
        with pytest.raises(Failure) as raised:
            await heard(models)
    assert web.limits == [1.0]
    return raised.value


def test_who_does_not_pick_up_is_not_waited_for() -> None:
    async def main() -> None:
        failure = await asked(Lost(How.UNCONNECTED))
        assert isinstance(failure, ModelStalled)
        assert (failure.stage, failure.seconds) == ("connecting", 1.0)

    passed(main())


@pytest.mark.parametrize("how", [How.GONE, How.UNTRUSTED])
def test_who_is_not_there_may_come_back_and_who_is_not_trusted_will_not_be(how: How) -> None:
    async def main() -> None:
        failure = await asked(Lost(how, "because"))
        assert isinstance(failure, ModelUnreachable)
        assert (failure.reason, failure.retryable) == ("because", how is How.GONE)

    passed(main())
