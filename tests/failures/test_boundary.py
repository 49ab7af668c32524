"""The one place that catches everything: what it turns into failures, and what passes."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from contextlib import AbstractContextManager

import anyio
import pytest

from holdfast.failures import (
    Failure,
    TooManyOpenFiles,
    UnexpectedError,
    boundary,
    only_failure,
    ungrouped,
)
from tests.failures.specimens import Specimen

BEETLE = "beetle"


class Mute(Exception):
    """An error that cannot even be read."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("bad"), ("ValueError", "bad")),
        (AssertionError("ours"), ("AssertionError", "ours")),
        (RecursionError("deep"), ("RecursionError", "deep")),
        (StopIteration(3), ("StopIteration", "3")),
        (ExceptionGroup("g", [OSError("disk")]), ("OSError", "disk")),
        (Mute(), ("Mute", "(its message cannot be read)")),
        (ValueError("x" * 10_000), ("ValueError", "x" * 500)),
    ],
)
def test_what_nobody_foresaw_becomes_a_failure(error: Exception, expected: tuple[str, str]) -> None:
    with pytest.raises(UnexpectedError) as raised, boundary("tool.run"):
        raise error

    failure = raised.value
    assert (failure.error, failure.text) == expected
    assert (failure.code, failure.phase) == ("INTERNAL_UNEXPECTED", "tool.run")
    assert isinstance(failure.__cause__, Exception)


def test_it_says_where_it_happened() -> None:
    with pytest.raises(UnexpectedError) as raised, boundary("tool.run"):
        int("seven")

    module, _, line = raised.value.where.partition(":")
    assert module == __name__
    assert line.isdigit()


@pytest.mark.parametrize(
    ("failure", "phase"),
    [
        (Specimen(name=BEETLE), "collect"),
        (UnexpectedError(error="E", text="", where=""), "tool.run"),
        (UnexpectedError(error="E", text="", where="").during("inner"), "inner"),
    ],
)
def test_a_failure_passes_and_learns_its_phase(failure: Failure, phase: str) -> None:
    with pytest.raises(Failure) as raised, boundary("tool.run"):
        raise failure

    assert raised.value is failure
    assert failure.phase == phase


@pytest.mark.parametrize(
    "error",
    [
        asyncio.CancelledError(),
        KeyboardInterrupt(),
        SystemExit(3),
        GeneratorExit(),
        BaseExceptionGroup("g", [ValueError("x"), asyncio.CancelledError()]),
        BaseExceptionGroup("g", [Specimen(name=BEETLE), KeyboardInterrupt()]),
    ],
)
def test_being_told_to_stop_passes_through(error: BaseException) -> None:
    with pytest.raises(BaseException) as raised, boundary("tool.run"):
        raise error

    assert raised.value is error


def test_nothing_happens_when_nothing_does() -> None:
    with boundary("tool.run"), ungrouped():
        pass


@pytest.mark.anyio
async def test_a_cancelled_scope_ends_quietly() -> None:
    with anyio.CancelScope() as scope, boundary("tool.run"):
        scope.cancel()
        await anyio.sleep(3600)

    assert scope.cancelled_caught


def failing(*errors: Exception) -> ExceptionGroup[Exception]:
    return ExceptionGroup("tasks", [ExceptionGroup("inner", list(errors))])


def test_a_declared_failure_stands_for_its_group() -> None:
    declared, bug = Specimen(name=BEETLE), UnexpectedError(error="E", text="", where="")

    assert only_failure(failing(ValueError("x"), bug, declared)) is declared
    assert only_failure(failing(ValueError("x"), bug)) is bug
    assert isinstance(only_failure(failing(ValueError("x"))), UnexpectedError)


@pytest.mark.parametrize("guard", [lambda: boundary("tool.run"), ungrouped])
@pytest.mark.parametrize(
    "failure", [Specimen(name=BEETLE), UnexpectedError(error="E", text="", where="")]
)
def test_a_failure_leaves_its_task_group_alone_and_with_its_cause(
    guard: Callable[[], AbstractContextManager[None]], failure: Failure
) -> None:
    failure.__cause__ = cause = OSError("pipe")

    with pytest.raises(Failure) as raised, guard():
        raise failing(ValueError("another"), failure)

    assert raised.value is failure
    assert failure.__cause__ is cause


@pytest.mark.anyio
async def test_a_failure_leaves_a_real_task_group_alone() -> None:
    async def fail() -> None:
        raise Specimen(name=BEETLE)

    with pytest.raises(Specimen) as raised, ungrouped():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail)
            tasks.start_soon(anyio.sleep, 3600)

    assert raised.value == Specimen(name=BEETLE)
    assert isinstance(raised.value.__cause__, ExceptionGroup)


@pytest.mark.parametrize(
    "group", [failing(ValueError("x")), BaseExceptionGroup("g", [KeyboardInterrupt()])]
)
def test_a_group_without_failures_is_left_as_it_is(
    group: BaseExceptionGroup[BaseException],
) -> None:
    with pytest.raises(BaseExceptionGroup) as raised, ungrouped():
        raise group

    assert raised.value is group


@pytest.mark.promise("W7")
@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_a_lack_of_file_descriptors_has_a_name(number: int) -> None:
    error = OSError(number, os.strerror(number))
    expected = TooManyOpenFiles(reason=os.strerror(number))

    with pytest.raises(TooManyOpenFiles) as caught, boundary("status"):
        raise error
    assert (caught.value.details, caught.value.phase) == (expected.details, "status")
    assert only_failure(ExceptionGroup("x", [error])) == expected
