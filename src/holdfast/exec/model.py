"""Data types of the exec client: events, commands, pages.

`Output`, `Exited` and `Closed` are the decoded forms of the wire messages in `exec.protocol`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Output:
    """A piece of output; `stream` is stdout, stderr or pty."""

    seq: int
    stream: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Exited:
    """The process has exited; output of its descendants may still follow.

    If it `is_lost` the exit status is unknown: its keeper was killed.
    """

    seq: int
    status: int
    sandbox_denied: bool = False
    is_lost: bool = False


@dataclass(frozen=True, slots=True)
class Closed:
    """Last event: the process has exited and all its output was read."""

    seq: int


Event = Output | Exited | Closed


@dataclass(frozen=True, slots=True)
class Page:
    """Result of one read: output with sequence numbers; exit and close without theirs.

    `next_seq` follows the last event of the page; if the page `is_whole` it is the next sequence
    number of the process. `first_retained`, if the server reports it, is the oldest retained one.
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
    """A command to run on the server; `env` is its complete environment.

    `rows` and `cols` are the initial terminal size, if the server supports that. `sandbox` is a
    Codex sandbox policy; a server that cannot enforce it refuses the start. With `keep` the process
    outlives its client's session timeout, if the server supports that.
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
    """A process that outlived its keeper, so that no server controls it."""

    pid: int
    command: str


@dataclass(frozen=True, slots=True)
class Detached:
    """A descendant that outlives the process that started it; `process` is empty once forgotten."""

    pid: int
    command: str
    session: str
    process: str = ""


@dataclass(frozen=True, slots=True)
class WebHeader:
    """A header of an HTTP request; the value of the server's environment `variable` is appended."""

    name: str
    value: str
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class Fetch:
    """An HTTP request for the server to make; `timeout` in seconds covers the whole response."""

    url: str
    method: str = "GET"
    headers: tuple[WebHeader, ...] = ()
    body: bytes = b""
    timeout: float | None = None
    follows_redirects: bool = True


@dataclass(frozen=True, slots=True)
class Fetched:
    """A complete HTTP response."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


AWAITS_READER = "reader"
"""What stands in place of a code where a process waits for whoever reads its output."""


class ClientState(StrEnum):
    """Connection state of a client."""

    CONNECTED = "connected"
    RECOVERING = "recovering"
    FAILED = "failed"
