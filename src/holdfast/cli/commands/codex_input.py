"""Read what is to be asked of Codex, from the arguments and from standard input."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import NoReturn

from holdfast.app.settings import Settings
from holdfast.cli.declarations import Request
from holdfast.cli.failures import UsageWrong
from holdfast.cli.output import is_terminal
from holdfast.cli.terminal import whole_input

CHARACTERS_MOST = 2**20  # all that Codex takes
_BYTES_MOST = 4 * CHARACTERS_MOST
_OF_A_NEW_THREAD = ("--cwd", "--model", "--sandbox", "--approval-policy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One turn that is to be taken; None leaves a choice to Codex."""

    prompt: str
    codex: str
    cwd: str
    model: str | None = None
    sandbox: str | None = None
    approval_policy: str | None = None
    timeout: float | None = None
    resume: str | None = None


def read_order(request: Request, settings: Settings) -> Order:
    """The order that a request is, or a failure that says what is wrong with it."""
    resume, timeout = request.value("--resume"), request.value("--timeout")
    if resume is not None:
        for flag in _OF_A_NEW_THREAD:
            if request.value(flag) is not None:
                _refuse(f"{flag} goes with a new thread; a resumed one keeps its settings", request)
    return Order(
        cwd=directory(request) or os.getcwd(),
        prompt=_checked(_prompt(request), request),
        codex=request.value("--codex") or settings.codex,
        model=request.value("--model"),
        sandbox=request.value("--sandbox"),
        approval_policy=request.value("--approval-policy"),
        timeout=None if timeout is None else float(timeout),
        resume=resume,
    )


def directory(request: Request) -> str | None:
    """The directory that was named, which must be one."""
    named = request.value("--cwd")
    if named is None:
        return None
    if not os.path.isdir(named):
        _refuse(f"--cwd: {named} is not a directory", request)
    return os.path.realpath(named)


def _prompt(request: Request) -> str:
    if request.argument not in (None, "-"):
        return request.argument
    if request.argument is None and is_terminal(sys.stdin):
        _refuse("say what to ask: a PROMPT, or - to read it from standard input", request)
    return whole_input(_BYTES_MOST + 1)


def _checked(prompt: str, request: Request) -> str:
    if not prompt.strip():
        _refuse("the prompt is empty", request)
    if len(prompt) > CHARACTERS_MOST:
        _refuse(f"the prompt has more than the {CHARACTERS_MOST:,} characters Codex takes", request)
    if any("\ud800" <= character <= "\udfff" for character in prompt):
        _refuse("the prompt is not UTF-8 text", request)
    return prompt


def _refuse(problem: str, request: Request) -> NoReturn:
    raise UsageWrong(problem=problem, read_on=f"holdfast {request.command} --help")
