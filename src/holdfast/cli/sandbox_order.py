"""Read what a command that is to be shut in may touch, from the arguments."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from holdfast.app.settings import Settings
from holdfast.cli.commands import Request
from holdfast.cli.failures import UsageWrong
from holdfast.confine.core.allowlist import AllowList, allow_list
from holdfast.confine.core.policy import ENVIRONMENT, Policy, Strength, is_within
from holdfast.confine.threshold import PROXY_PORT
from holdfast.world import disk_failure, make_private

_PROXY: Final = f"http://127.0.0.1:{PROXY_PORT}"
PROXIED: Final = {
    **{f"{kind}_proxy": _PROXY for kind in ("http", "https", "all")},
    **{f"{kind}_PROXY": _PROXY for kind in ("HTTP", "HTTPS", "ALL")},
    "NODE_USE_ENV_PROXY": "1",  # or Node would not look at the others
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A command, where it runs, and what it may touch."""

    argv: tuple[str, ...]
    cwd: str
    policy: Policy
    hosts: tuple[str, ...]
    allowed: AllowList
    is_explained: bool = False


def read_order(request: Request, *, home: Path) -> Order:
    """The order that a request is, or a failure that says what is wrong with it.

    The current directory is seen, and can be changed only if it was given with --write.
    """
    if not request.words:
        _refuse("say what to run, as in: holdfast sandbox -- make")
    hosts = request.values("--net")
    allowed = allow_list(*hosts)
    cwd = os.getcwd()
    writable = tuple(_directory(word, "--write") for word in request.values("--write"))
    readable = tuple(_existing(word) for word in request.values("--read"))
    if not is_within(cwd, (*readable, *writable)):
        if is_within(os.path.realpath(home), (cwd,)):
            _refuse(
                f"{cwd} holds everything of yours: change to a project first, or name with --read "
                "or --write what the command may see"
            )
        readable = (cwd, *readable)
    policy = Policy(
        readable=readable,
        writable=writable,
        environment=(*ENVIRONMENT, *PROXIED) if hosts else ENVIRONMENT,
        # The lesser sandbox has no network of its own that a proxy could stand in, and no view of
        # its own that could be compared.
        strength_least=Strength.FULL if hosts or request.has("--explain") else Strength.REDUCED,
    )
    return Order(
        argv=request.words,
        cwd=cwd,
        policy=policy,
        hosts=hosts,
        allowed=allowed,
        is_explained=request.has("--explain"),
    )


def kept_in(settings: Settings) -> Path:
    """Where it is kept which sandboxes there are."""
    directory = settings.state / "sandbox"
    try:
        make_private(directory)
    except OSError as error:
        raise disk_failure(error, path=str(directory)) from error
    return directory


def _directory(word: str, flag: str) -> str:
    if not os.path.isdir(word):
        _refuse(f"{flag}: {word} is no directory")
    return os.path.realpath(word)


def _existing(word: str) -> str:
    if not os.path.exists(word):
        _refuse(f"--read: there is no {word}")
    return os.path.realpath(word)


def _refuse(problem: str) -> NoReturn:
    raise UsageWrong(problem=problem, read_on="holdfast sandbox --help")
