"""Boundary around foreign code: the only place that catches `Exception`."""

from __future__ import annotations

import errno
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
    user_message="An unexpected error ({error}) stopped this step. "
    "What was saved is safe; the report says where it happened.",
    actions=(Action.VIEW_REPORT, Action.RETRY),
):
    """Foreign code, or a bug in Holdfast, raised an exception that is not a failure."""

    error: str
    text: str
    where: str


class TooManyOpenFiles(
    Failure,
    code="OPEN_FILES_EXHAUSTED",
    kind=Kind.NOT_DURABLE,
    title="Too many open files",
    user_message="This process may not open another file ({reason}). What was saved is safe. "
    "Raise the limit (`ulimit -n 4096`) or end other programs, and try again.",
    retryable=True,
    actions=(Action.RETRY, Action.CANCEL),
):
    """The process (EMFILE) or the machine (ENFILE) has no file descriptor left."""

    reason: str


def descriptors_exhausted(error: BaseException) -> TooManyOpenFiles | None:
    """The failure that an error is when a file descriptor was lacking; None for any other error."""
    if isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE}:
        return TooManyOpenFiles(reason=error.strerror or "")
    return None


@contextmanager
def boundary(phase: str) -> Generator[None]:
    """Convert exceptions of foreign code to failures; cancellation propagates unchanged."""
    try:
        yield
    except Failure as failure:
        failure.during(phase)
        raise
    except BaseExceptionGroup as group:
        found = only_failure(group)
        if found is None:
            raise
        raise found.during(phase) from found.__cause__ or group
    except Exception as error:
        raise (descriptors_exhausted(error) or _unexpected(error)).during(phase) from error


@contextmanager
def ungrouped() -> Generator[None]:
    """Raise the failure that ended a task group instead of the exception group around it."""
    try:
        yield
    except BaseExceptionGroup as group:
        found = only_failure(group)
        if found is None or not any(isinstance(error, Failure) for error in _leaves(group)):
            raise
        raise found from found.__cause__ or group


def only_failure(group: BaseExceptionGroup[BaseException]) -> Failure | None:
    """The failure to raise in place of a group: a declared one before an `UnexpectedError`.

    None if the group contains a BaseException that must propagate, such as a cancellation.
    """
    errors = list(_leaves(group))
    foreseeable = [error for error in errors if isinstance(error, Exception)]
    if len(foreseeable) < len(errors):
        return None
    failures = [error for error in foreseeable if isinstance(error, Failure)]
    declared = [failure for failure in failures if not isinstance(failure, UnexpectedError)]
    return next(iter(declared + failures), None) or (
        descriptors_exhausted(foreseeable[0]) or _unexpected(foreseeable[0])
    )


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
    found = UnexpectedError(error=type(error).__name__, text=_text(error), where=where)
    found.__cause__ = error
    return found


def _text(error: Exception) -> str:
    try:
        return str(error)[:_TEXT_MAX]
    except Exception:  # noqa: BLE001  # even the text of a foreign error is foreign code
        return "(its message cannot be read)"
