"""Where foreign code runs: the one place that catches everything."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import cast

from holdfast.failures.base import Failure
from holdfast.failures.kinds import Action, Kind

_TEXT_MAX = 500


class UnexpectedError(
    Failure,
    code="INTERNAL_UNEXPECTED",
    kind=Kind.BROKEN,
    title="Something unexpected happened",
    user_message="An error that nobody foresaw ({error}) stopped this step. "
    "What was saved is safe; the report says where it happened.",
    actions=(Action.VIEW_REPORT, Action.RETRY),
):
    """Code that is not ours, or a bug of ours, raised what nobody declared."""

    error: str
    text: str
    where: str


@contextmanager
def boundary(phase: str) -> Generator[None]:
    """Turn whatever foreign code raises into a failure; cancellation passes through."""
    try:
        yield
    except Failure as failure:
        failure.during(phase)
        raise
    except BaseExceptionGroup as group:
        found = only_failure(group)
        if found is None:
            raise
        raise found.during(phase) from group
    except Exception as error:
        raise _unexpected(error).during(phase) from error


@contextmanager
def ungrouped() -> Generator[None]:
    """Raise the failure that ended a task group by itself, not in an exception group."""
    try:
        yield
    except BaseExceptionGroup as group:
        failure = only_failure(group)
        if failure is None or isinstance(failure, UnexpectedError):
            raise
        raise failure from group


def only_failure(group: BaseExceptionGroup[BaseException]) -> Failure | None:
    """The first failure of a group; None when something that must pass through is in it."""
    first: Failure | None = None
    for error in _leaves(group):
        if not isinstance(error, Exception):
            return None
        found = error if isinstance(error, Failure) else _unexpected(error)
        if first is None or (isinstance(first, UnexpectedError) and isinstance(error, Failure)):
            first = found
    return first


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(cast("BaseExceptionGroup[BaseException]", error))  # any group is
        else:
            yield error


def _unexpected(error: Exception) -> UnexpectedError:
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = "" if frame is None else f"{frame.tb_frame.f_globals.get('__name__')}:{frame.tb_lineno}"
    return UnexpectedError(error=type(error).__name__, text=str(error)[:_TEXT_MAX], where=where)
