"""All checks are carried out, whatever one of them does."""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest

from holdfast.app.doctor.doctor import AT_ONCE_MAX, Check, examine
from holdfast.app.doctor.model import Finding, Machine, Result, Status
from tests.simulation.clock import VirtualTimeLoop

pytestmark = pytest.mark.anyio

LINUX, MAC = Machine(system="Linux"), Machine(system="Darwin")
FINE = Finding(Status.OK, "fine")


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": lambda: VirtualTimeLoop(seed=1)}


def after(seconds: float, name: str = "a", only_on: str | None = None) -> Check:
    async def look() -> Finding:
        await anyio.sleep(seconds)
        return FINE

    return Check(name, "G", "t", look, only_on)


async def visit(checks: list[Check], machine: Machine = LINUX) -> list[Result]:
    hand_over, results = anyio.create_memory_object_stream[Result](len(checks))
    async with results, anyio.create_task_group() as tasks:
        tasks.start_soon(examine, checks, machine, hand_over)
        return [result async for result in results]


async def test_results_come_as_they_are_found() -> None:
    found = await visit([after(2.0, "slow"), after(1.0, "quick")])

    assert [(result.id, result.finding, result.duration) for result in found] == [
        ("quick", FINE, 1.0),
        ("slow", FINE, 2.0),
    ]


async def test_checks_run_side_by_side_but_not_all_at_once() -> None:
    begin = anyio.current_time()
    await visit([after(1.0, str(number)) for number in range(AT_ONCE_MAX * 2)])

    assert anyio.current_time() - begin == 2.0


async def test_a_check_of_another_system_is_skipped_with_a_word() -> None:
    (result,) = await visit([after(0.0, only_on="Linux")], MAC)

    assert result.finding == Finding(Status.SKIPPED, "Linux only; this is Darwin")


async def test_a_check_that_breaks_is_a_finding_and_hides_no_other() -> None:
    async def broken() -> Finding:
        raise ZeroDivisionError("seven")

    found = await visit([replace(after(0.0, "broken"), look=broken), after(1.0, "whole")])

    assert [(result.id, result.finding.status) for result in found] == [
        ("broken", Status.FAILED),
        ("whole", Status.OK),
    ]
    assert "ZeroDivisionError" in found[0].finding.text
