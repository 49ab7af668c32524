"""Run a command: its output, its failure and its exit status.

Every failure ends here; no exception leaves `run` except SystemExit after a signal.
"""

from __future__ import annotations

import logging
import signal
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module

from holdfast.app.settings import Settings, load
from holdfast.cli.declarations import Misuse, Request
from holdfast.cli.failures import OutputLost, UsageWrong
from holdfast.cli.model import Outcome
from holdfast.cli.output import abandon, complain, write
from holdfast.failures import Failure, boundary, set_class_loader
from holdfast.nouns import printable

READER_GONE = 141  # 128 + SIGPIPE, the status of a program whose reader has closed the pipe
HANDLERS = {  # module and function of each handler
    "acp": ("commands.acp", "acp"),
    "ask": ("commands.ask", "ask"),
    "attach": ("commands.attach", "attach"),
    "chat": ("commands.chat", "chat"),
    "checkpoint create": ("commands.checkpoint", "create"),
    "checkpoint diff": ("commands.checkpoint", "comparing"),
    "checkpoint list": ("commands.checkpoint", "listing"),
    "checkpoint show": ("commands.checkpoint", "showing"),
    "codex ask": ("commands.codex", "ask"),
    "codex threads": ("commands.codex", "threads"),
    "completion": ("commands.completion", "completion"),
    "config show": ("commands.settings", "show"),
    "consent": ("commands.consent", "consent"),
    "demo": ("commands.demo", "demo"),
    "doctor": ("commands.doctor", "doctor"),
    "draft diff": ("commands.diff", "diff"),
    "draft merge": ("commands.draft", "merging"),
    "draft show": ("commands.draft", "showing"),
    "draft discard": ("commands.draft", "forget"),
    "draft list": ("commands.draft", "listing"),
    "draft open": ("commands.draft", "begin"),
    "draft path": ("commands.draft", "path"),
    "draft run": ("commands.draft", "run"),
    "draft undo": ("commands.draft", "back"),
    "exec": ("commands.exec", "run_there"),
    "exec-server": ("commands.exec_server", "exec_server"),
    "fork": ("commands.fork", "fork"),
    "host": ("commands.host", "host"),
    "login": ("commands.settings", "login"),
    "logs": ("commands.processes", "logs"),
    "man": ("commands.completion", "man"),
    "ps": ("commands.processes", "ps"),
    "publish": ("commands.publish", "publish"),
    "recover": ("commands.status", "recover"),
    "restore": ("commands.checkpoint", "restore"),
    "sandbox": ("commands.sandbox", "sandbox"),
    "sandbox probe": ("commands.sandbox", "sandbox_probe"),
    "sessions end": ("commands.sessions", "end"),
    "sessions export": ("commands.sessions", "export"),
    "sessions import": ("commands.session_import", "take_over"),
    "sessions list": ("commands.sessions", "listing"),
    "sessions show": ("commands.sessions", "show"),
    "sessions watch": ("commands.sessions", "watch"),
    "status": ("commands.status", "status"),
    "stop": ("commands.stop", "stop"),
    "storage": ("commands.checkpoint", "storage"),
    "trust": ("commands.settings", "trust"),
}


def run(request: Request | Misuse) -> int:
    """Run the command, report its failure if there is one, and return the exit status."""
    settings: Settings | None = None
    set_class_loader(_load_failure_classes)
    try:
        with boundary("cli"), _stoppable():
            if isinstance(request, Misuse):
                raise UsageWrong(problem=request.problem, read_on=request.read_on)
            settings = load()
            outcome = _run_command(request, settings)
            if outcome.answer:
                _emit(outcome.answer)
            is_reported = request.is_json
    except Failure as failure:
        outcome, is_reported = Outcome(failure=failure), False
    status = outcome.status
    if outcome.failure is not None:
        usual = _fail(outcome.failure, request, settings, is_reported=is_reported)
        status = status or usual
    if outcome.hint:
        complain(f"{outcome.hint}\n")
    return status


def _load_failure_classes() -> None:
    from holdfast.app.failure_catalogue import load_failure_classes

    load_failure_classes()


def _run_command(request: Request, settings: Settings) -> Outcome:
    if request.page is not None:
        return Outcome(answer=request.page)
    if not settings.debug:
        # asyncio logs warnings, such as about a child that was reaped elsewhere, which mean
        # nothing to a user.
        logging.getLogger("asyncio").addHandler(logging.NullHandler())
    return _command(request.command)(request, settings)


def _command(name: str) -> Callable[[Request, Settings], Outcome]:
    """The handler of a command, imported on demand: start-up loads one command only."""
    module, function = HANDLERS[name]
    found: Callable[[Request, Settings], Outcome] = getattr(
        import_module(f"holdfast.cli.{module}"), function
    )
    return found


def _emit(answer: str) -> None:
    """Write to standard output; raises OutputLost."""
    try:
        write(answer)
    except OSError as error:
        abandon(1)
        raise OutputLost(reason=error.strerror or str(error)) from error


def _fail(
    failure: Failure, request: Request | Misuse, settings: Settings | None, *, is_reported: bool
) -> int:
    """Report and store a failure; a closed pipe is neither."""
    if _is_reader_gone(failure):
        return READER_GONE
    from holdfast.cli.failure_report import keep

    failure.stamped(time.time())
    try:
        if not is_reported:
            _report(failure, request, settings)
    except OutputLost as lost:
        if _is_reader_gone(lost):
            return READER_GONE
        complain(_page(failure, request, settings))
    finally:
        keep(failure, settings)
    return failure.kind.exit_status


def _is_reader_gone(failure: Failure) -> bool:
    return isinstance(failure, OutputLost) and isinstance(failure.__cause__, BrokenPipeError)


def _report(failure: Failure, request: Request | Misuse, settings: Settings | None) -> None:
    """Print a failure: as JSON on standard output, or as text on standard error."""
    if request.is_json and not isinstance(failure, OutputLost):
        import json

        _emit(json.dumps(_record(failure, request.command)) + "\n")
    else:
        complain(_page(failure, request, settings))


def _record(failure: Failure, command: str) -> dict[str, object]:
    from holdfast.cli.failure_report import reported

    wire = reported(failure)
    if command == "codex ask":
        from holdfast.cli.render.records import Result, result_record

        return result_record(Result(), error=wire)
    if command == "ask":
        from holdfast.cli.render.turns import TurnResult, result_of

        return result_of(TurnResult(status="failed"), error=wire)
    return wire


def _page(failure: Failure, request: Request | Misuse, settings: Settings | None) -> str:
    from holdfast.cli.failure_report import readable
    from holdfast.cli.output import look_for
    from holdfast.cli.render.errors import error_page

    if isinstance(failure, UsageWrong):
        page = f"holdfast: {printable(failure.problem)}\nTry: {failure.read_on}\n"
    else:
        is_verbose = _wants_details(request, settings)
        page = error_page(failure, look_for(sys.stderr, request, settings), is_verbose=is_verbose)
    return readable(page)


def _wants_details(request: Request | Misuse, settings: Settings | None) -> bool:
    is_asked = isinstance(request, Request) and request.is_verbose
    return is_asked or (settings is not None and settings.debug)


@contextmanager
def _stoppable() -> Generator[None]:
    """Let SIGTERM unwind as SIGINT does, so that no child is left, and end with its status."""
    received = [signal.SIGINT]

    def stop(number: int, _: object) -> None:
        received.append(signal.Signals(number))
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # by nohup, or as a job of a script
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGTERM)
    try:
        # Within the block: a SIGTERM in the next instruction must find the handler below.
        signal.signal(signal.SIGTERM, stop)
        yield
    except KeyboardInterrupt:
        raise SystemExit(128 + received[-1]) from None
    finally:
        signal.signal(signal.SIGTERM, before)
