"""The nouns of processes that outlive their connection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Output:
    """A piece of what a process wrote; `stream` is stdout, stderr or pty."""

    seq: int
    stream: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Exited:
    """The process has ended; output of its descendants may still follow.

    Of one that `is_lost` the status is not known; it was killed or has ended with its keeper.
    """

    seq: int
    status: int
    sandbox_denied: bool = False
    is_lost: bool = False


@dataclass(frozen=True, slots=True)
class Closed:
    """The process has ended and nothing of it will follow."""

    seq: int


Event = Output | Exited | Closed


@dataclass(frozen=True, slots=True)
class Page:
    """What one read of a process yielded; exit and close are told, but not where they stand.

    `next_seq` is the number after the last that the page speaks of; if the page `is_whole`, that
    is the next number of the process. `first_retained`, where the server tells it, is the number
    after the last that it has dropped.
    """

    chunks: tuple[Output, ...]
    next_seq: int
    status: int | None
    closed: bool
    sandbox_denied: bool = False
    first_retained: int = 0
    is_whole: bool = True
    is_lost: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """What to run on the server, and with what; `env` is all that it gets.

    Its terminal has the size from the start where the server can do that, as ours does. `sandbox`
    is what it may touch, as Codex says that; a server that cannot keep to it refuses to start it.
    If `keep`, a server that can keeps it until it ends, also if its client never comes back.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    tty: bool = False
    has_stdin: bool = False
    rows: int = 24
    cols: int = 80
    sandbox: Mapping[str, object] | None = None
    keep: bool = False


@dataclass(frozen=True, slots=True)
class Orphan:
    """A process that lives although its keeper is gone: no server can tell about it."""

    pid: int
    command: str


@dataclass(frozen=True, slots=True)
class Detached:
    """What a process has started and left running; its id is empty once it is forgotten."""

    pid: int
    command: str
    session: str
    process: str = ""


@dataclass(frozen=True, slots=True)
class WebHeader:
    """A header of a web request; the server's own `variable`, if one is named, ends its value."""

    name: str
    value: str
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class Fetch:
    """A web request for the server to make; `timeout` is for the whole of its answer."""

    url: str
    method: str = "GET"
    headers: tuple[WebHeader, ...] = ()
    body: bytes = b""
    timeout: float | None = None
    follows_redirects: bool = True


@dataclass(frozen=True, slots=True)
class Fetched:
    """The whole answer to a web request."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


AWAITS_READER = "reader"
"""What stands in place of a code where a process waits for whoever reads its output."""


class ClientState(StrEnum):
    """Where a client stands."""

    CONNECTED = "connected"
    RECOVERING = "recovering"
    FAILED = "failed"
