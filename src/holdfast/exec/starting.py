"""Start a process so that nobody has to guess, later, whether it runs."""

from __future__ import annotations

import os
from copy import copy

import anyio

from holdfast.exec.core.answers import refused
from holdfast.exec.core.file_uri import uri_of
from holdfast.exec.failures import OutcomeUnknown, ProcessExists, StartFailed
from holdfast.exec.feed import Feed
from holdfast.exec.line import Line
from holdfast.exec.model import Command
from holdfast.exec.wire import StartParams, StartResult, WriteParams, WriteResult
from holdfast.rpc.failures import ErrorResponse, RequestTimedOut

_LOOK_AGAIN = 0.05
_PUT_DOWN_LONGEST = 1.0
_STARTING_LONGEST = 10.0
_COMMAND_CHARS_MAX = 200


async def start(
    feed: Feed, command: Command, line: Line, *, continue_if_started: bool
) -> StartResult | None:
    """Start a process; nothing is said of one that was found after its start had been cut off.

    A start that nobody knows the outcome of is looked up if that was asked for; else, and if the
    caller no longer waits, whatever came of it is ended. Until then nobody gets its id.
    """
    try:
        try:
            return await line.call("process/start", _params(feed.process, command), StartResult)
        except (OutcomeUnknown, RequestTimedOut):
            if not (continue_if_started and await _is_there(feed.process, line)):
                await feed.put_down()
                raise
            await feed.catch_up(feed.ask)
            return None
        finally:
            feed.is_started = True
    except ErrorResponse as error:
        raise _refused(error, feed.process, command) from error
    except OutcomeUnknown as unknown:
        if line.failure is not None:
            raise copy(line.failure) from unknown
        raise
    except anyio.get_cancelled_exc_class():
        # Before whoever gave up closes the client, if that takes no longer than a moment.
        with anyio.move_on_after(_PUT_DOWN_LONGEST, shield=True) as patience:
            await feed.put_down()
        if patience.cancelled_caught:
            line.start_soon(feed.put_down)
        raise


async def _is_there(process: str, line: Line) -> bool:
    """Whether the server has a process; one that is being started is waited for, but not for ever.

    Only the answer to a write tells the three apart by more than words; it writes nothing. There
    are servers to which a start that was cut off is being made for good.
    """
    params = WriteParams(process, "", "look")
    deadline = anyio.current_time() + _STARTING_LONGEST
    while anyio.current_time() < deadline:
        answer = await line.call("process/write", params, WriteResult, repeats=True)
        if answer.status != "starting":
            return answer.status != "unknownProcess"
        await anyio.sleep(_LOOK_AGAIN)
    return False


def _params(process: str, command: Command) -> StartParams:
    return StartParams(
        process_id=process,
        argv=command.argv,
        cwd=uri_of(os.fsencode(command.cwd)),
        env=dict(command.env),
        tty=command.tty,
        pipe_stdin=command.has_stdin,
        rows=command.rows,
        cols=command.cols,
        sandbox=None if command.sandbox is None else dict(command.sandbox),
        keep=command.keep,
    )


def _refused(error: ErrorResponse, process: str, command: Command) -> Exception:
    failure = refused(error, subject=process)
    if isinstance(failure, ProcessExists):
        return failure
    return StartFailed(
        command=" ".join(command.argv)[:_COMMAND_CHARS_MAX], reason=error.error_message
    )
