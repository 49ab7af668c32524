"""The last resort: whatever happens below ends here as one answer and one exit status."""

from __future__ import annotations

import json
import shutil
import signal
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

from holdfast.app.settings import Settings, load
from holdfast.cli.commands import Misuse, Request
from holdfast.cli.core.error_page import error_page
from holdfast.cli.core.look import Look, look
from holdfast.cli.core.printable import printable
from holdfast.cli.failures import OutputLost, UsageWrong
from holdfast.cli.output import abandon, complain, write
from holdfast.failures import Failure, boundary, to_wire

READER_GONE = 141  # 128 + SIGPIPE: what a shell says of a program whose reader left


def run(request: Request | Misuse) -> int:
    """Carry out what is asked, say how it ended, and return the exit status."""
    settings: Settings | None = None
    try:
        with boundary("cli"), _stoppable():
            if isinstance(request, Misuse):
                raise UsageWrong(problem=request.problem, read_on=request.read_on)
            settings = load()
            return _carry_out(request, settings)
    except Failure as failure:
        _report(failure.stamped(time.time()), request, settings)
        return failure.kind.exit_status


def _carry_out(request: Request, settings: Settings) -> int:
    status, answer = 0, request.page
    if answer is None:
        from holdfast.cli.doctor import doctor  # the only command so far

        status, answer = doctor(request, settings, _look(sys.stdout, request, settings))
    _emit(answer)
    return status


def _emit(answer: str) -> None:
    """Write all of it to standard output, or raise."""
    try:
        write(answer)
    except BrokenPipeError:
        abandon(1)
        raise SystemExit(READER_GONE) from None
    except OSError as error:
        abandon(1)
        raise OutputLost(reason=error.strerror or str(error)) from error


def _report(failure: Failure, request: Request | Misuse, settings: Settings | None) -> None:
    """Say what went wrong, once: to a program on standard output, to a person on the other."""
    if request.is_json and not isinstance(failure, OutputLost):
        _emit(json.dumps(to_wire(failure)) + "\n")
        return
    if isinstance(failure, UsageWrong):
        text = f"holdfast: {printable(failure.problem)}\nTry: {failure.read_on}\n"
    else:
        is_verbose = _wants_details(request, settings)
        text = error_page(failure, _look(sys.stderr, request, settings), is_verbose=is_verbose)
    complain(text)


def _wants_details(request: Request | Misuse, settings: Settings | None) -> bool:
    is_asked = isinstance(request, Request) and request.is_verbose
    return is_asked or (settings is not None and settings.debug)


def _look(stream: TextIO | None, request: Request | Misuse, settings: Settings | None) -> Look:
    return look(
        wanted="auto" if isinstance(request, Misuse) else request.colour,
        is_terminal=stream is not None and stream.isatty(),
        colourless=settings is None or settings.colourless,
        encoding=getattr(stream, "encoding", "ascii"),
        columns=shutil.get_terminal_size().columns,
    )


@contextmanager
def _stoppable() -> Generator[None]:
    """Let SIGTERM unwind as SIGINT does, so that no child is left, and end with its status."""
    received = [signal.SIGINT]

    def stop(number: int, _: object) -> None:
        received.append(signal.Signals(number))
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        raise SystemExit(128 + received[-1]) from None
    finally:
        signal.signal(signal.SIGTERM, before)
