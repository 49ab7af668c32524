"""Run a command that is shut in, and say at the end what it was kept from."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import Final

import anyio

from holdfast.app.settings import Settings, environment, home_of_person
from holdfast.cli.commands import Request
from holdfast.cli.core.sandbox_page import (
    Attempt,
    Hindrance,
    Missed,
    Report,
    announcement,
    report_lines,
    report_record,
)
from holdfast.cli.model import Outcome
from holdfast.cli.output import complain, is_terminal
from holdfast.cli.sandbox_order import PROXIED, Order, kept_in, read_order
from holdfast.cli.sandbox_stay import Stay, signals_waiting
from holdfast.cli.sandbox_streams import Streams
from holdfast.confine.core.policy import OF_THE_SYSTEM, Policy, Strength, is_within
from holdfast.confine.core.watched import Refusal, Why
from holdfast.confine.entry import Entry, enter
from holdfast.confine.failures import SandboxFailed
from holdfast.confine.preflight import preflight
from holdfast.confine.proxy_loop import Proxy
from holdfast.confine.sandbox import Shut, shut_in
from holdfast.confine.threshold import Threshold, command_of
from holdfast.confine.watching import Watch

_SYSTEM: Final = "/usr/bin:/bin"
_SHELL: Final = "/bin/sh"
# Inside, because only there it is known what is seen; $0 is how a session is made, or nothing.
_FOUND: Final = """
say() { printf 'sandbox: %s\\n' "$1" >&2; exit "$2"; }
found=$1
case $1 in */*) ;; *)
    IFS=:
    for each in $PATH; do found=$each/$1; [ -f "$found" ] && [ -x "$found" ] && break; done
    unset IFS ;;
esac
[ -e "$found" ] || say "no program $1 is found inside" 127
[ -f "$found" ] && [ -x "$found" ] || say "$1 cannot be run" 126
exec $0 "$@"
"""


def sandbox(request: Request, settings: Settings) -> Outcome:
    """Run a command shut in, end as it ends, and say what was stopped."""
    order = read_order(request, home=home_of_person())
    state = kept_in(settings)
    proxy = Proxy(order.allowed)
    with ExitStack() as undo:
        streams = Streams()
        undo.callback(streams.close)
        shut = undo.enter_context(shut_in(_entry(order, streams), order.policy, state=state))
        if not request.is_json:
            complain(_announced(shut))
        watch = undo.enter_context(Watch()) if order.is_explained else None
        status = _stay(shut, streams, proxy if order.hosts else None, watch)
        told = None if watch is None else watch.told()
    report = _report(order, shut, proxy, status)
    if told is not None:
        missed = [_missed(each, order.policy) for each in told.refusals]
        report = replace(report, is_explained=True, missed=missed, missed_untold=told.untold)
    if request.is_json:
        return Outcome(status=status, hint=json.dumps(report_record(report)))
    lines = report_lines(report, is_talkative=is_terminal(sys.stderr))
    return Outcome(status=status, hint="\n".join(lines))


def _entry(order: Order, streams: Streams) -> Entry:
    """The command as it would start plainly, as the first of a group of its own."""
    variables = environment() | (PROXIED if order.hosts else {})
    argv = [_SHELL, "-c", _FOUND, _leading(streams.has_terminal), *order.argv]
    return Entry(argv, variables, order.cwd, argv[0], streams.files)


def _leading(has_terminal: bool) -> str:
    """What makes a command hear the signals of its terminal, and the shell around it not."""
    program = shutil.which("setsid", path=_SYSTEM)
    if program is None:
        return ""
    return f"{program} --ctty" if has_terminal else program


def _stay(shut: Shut, streams: Streams, proxy: Proxy | None, watch: Watch | None) -> int:
    """Start it and be at it until it ends; its exit status."""
    with signals_waiting(), ExitStack() as undo:
        if shut.strength is Strength.REDUCED:
            pid = _entered(shut.entry)
            streams.hand_over()
            return anyio.run(Stay(pid, streams, lambda: pid).run)
        with Threshold(shut.entry) as threshold:
            pid = _entered(threshold.entry if watch is None else watch.watched(threshold.entry))
            undo.callback(_put_down, pid, os.pidfd_open(pid))
            streams.hand_over()
            threshold.arrive()
            listener: socket.socket | None = None
            if proxy is not None:
                listener = undo.enter_context(threshold.listen())
            if watch is not None:
                watch.begin()
            threshold.cross()
        find = partial(command_of, threshold.first)
        return anyio.run(Stay(pid, streams, find, proxy, listener).run)


def _entered(entry: Entry) -> int:
    try:
        return enter(entry)
    except OSError as error:
        reason = f"{error.filename or entry.program}: {error.strerror}"
        raise SandboxFailed(reason=reason) from error


def _put_down(pid: int, life: int) -> None:
    """End it, if it has not ended by itself."""
    with suppress(ProcessLookupError, ChildProcessError):
        signal.pidfd_send_signal(life, signal.SIGKILL)
        os.waitpid(pid, 0)
    os.close(life)


def _announced(shut: Shut) -> str:
    if shut.strength is Strength.FULL:
        return announcement(shut.strength, (), shut.unkept)
    return announcement(shut.strength, preflight().reasons, shut.lacks)


def _missed(each: Refusal, policy: Policy) -> Missed:
    """What it means for a person that a path was out of reach."""
    if each.why == Why.UNSEEN:
        why = Hindrance.UNSEEN
    elif is_within(each.path, policy.writable):
        why = Hindrance.PROTECTED
    else:
        is_of_system = is_within(each.path, OF_THE_SYSTEM)
        why = Hindrance.OF_THE_SYSTEM if is_of_system else Hindrance.READ_ONLY
    return Missed(each.path, why, each.count)


def _report(order: Order, shut: Shut, proxy: Proxy, status: int) -> Report:
    traffic = proxy.traffic
    return Report(
        status=status,
        strength=shut.strength,
        lacks=shut.lacks,
        readable=order.policy.readable,
        writable=order.policy.writable,
        unseen=shut.unseen,
        hosts=order.hosts,
        reached=[Attempt(host, count) for host, count in traffic.reached],
        blocked=[Attempt(each.host, each.count, each.why) for each in traffic.stopped],
        unnamed=traffic.unnamed,
    )
