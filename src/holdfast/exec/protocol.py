"""Wire protocol between an exec-server and its clients, compatible with the Codex exec-server.

Theory of operation. JSON-RPC 2.0 messages over WebSocket or stdio; member names are camelCase.

    client                                         server
      initialize {resumeSessionId?, versions?} ──▶   new session, or the one to resume
      initialized (notification)               ──▶   opens the session for other methods
      process/start {processId, argv, ...}     ──▶   {sandboxType}
                         ◀── process/output {seq, stream, chunk}   repeated
                         ◀── process/exited {seq, exitCode}        output may still follow
                         ◀── process/closed {seq}                  last event
      process/read {afterSeq, waitMs}          ──▶   chunks still retained (after a reconnect)
      process/write {writeId, chunk}           ──▶   {status: accepted, stdinClosed, ...}
      process/taken {seq} (notification)       ──▶   flow control: frees credit, allows dropping

Invariants: the events of a process (output, exit, close) share one sequence from 1 without holes;
the server sends an event only after its index record is written; a `writeId` is written at most
once; a session belongs to one connection at a time.

Compatibility: unknown members are ignored, so that newer peers can connect. Extensions of ours are
marked "Ours" and used only if the other side announced the capability or a version. `Output`,
`Exited` and `Closed` here are the wire forms of the classes of the same names in `exec.model`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.rpc.failures import VersionRefused

SIZE_MAX = 2**16 - 1
"""So many rows or columns a terminal has at most."""

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""What one can count to: a number that every machine has room for."""


class WireStruct(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base of all messages; members with their default value are not encoded."""


class OutputStream(StrEnum):
    """The stream that output came from."""

    STDOUT = "stdout"
    STDERR = "stderr"
    PTY = "pty"


class Versions(WireStruct, frozen=True, omit_defaults=False):
    """Ours: the oldest and the newest protocol version that one side supports."""

    oldest: int = 1
    newest: int = 1


class InitializeParams(WireStruct, frozen=True):
    """Name of the client, and the session to resume.

    Ours: `unread_bytes_max` is how many bytes of each process the client buffers for a slow reader.
    `label` groups sessions, which an operator can end together.
    """

    client_name: str
    resume_session_id: str | None = None
    unread_bytes_max: int | None = None
    versions: Versions | None = None  # ours; whoever names none speaks as Codex does
    label: str = ""


class ShellInfo(WireStruct, frozen=True):
    """The default shell of the machine."""

    name: str
    path: str


class ServerCapabilities(WireStruct, frozen=True):
    """Optional methods of this server; absent means unsupported."""

    close_stdin: bool = False  # ours, like all below
    resize: bool = False
    list: bool = False
    kill: bool = False
    first_retained_seq: bool = False
    operator: bool = False
    places: bool = False
    keep: bool = False
    end: bool = False
    forget: bool = False


class EnvironmentInfo(WireStruct, frozen=True):
    """Description of the machine that the server runs on."""

    shell: ShellInfo
    cwd: str | None = None
    user_home_dir: str | None = None
    platform_os: str | None = None
    temp_dir: str | None = None
    executor_version: str | None = None
    capabilities: ServerCapabilities = ServerCapabilities()


class InitializeResult(WireStruct, frozen=True):
    """The session of this connection.

    Ours: the server sends at most `unread_bytes_max` bytes of each process before an
    acknowledgement (`process/taken`).
    """

    session_id: str
    environment_info: EnvironmentInfo | None = None
    unread_bytes_max: int | None = None
    versions: Versions | None = None  # ours, for those who named theirs


class EnvPolicy(WireStruct, frozen=True):
    """Which environment variables of the server a process inherits."""

    inherit: str  # all, core or none
    ignore_default_excludes: bool
    exclude: tuple[str, ...]
    set: dict[str, str]
    include_only: tuple[str, ...]


class StartParams(WireStruct, frozen=True):
    """A process to start; `cwd` is a file URI.

    Ours: `rows` and `cols` are the initial terminal size. With `keep` the process outlives its
    session's timeout until it exits or is terminated.
    """

    process_id: str
    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    tty: bool
    pipe_stdin: bool = False
    arg0: str | None = None
    env_policy: EnvPolicy | None = None
    sandbox: dict[str, object] | None = None
    rows: Annotated[int, Meta(ge=1, le=SIZE_MAX)] = 24
    cols: Annotated[int, Meta(ge=1, le=SIZE_MAX)] = 80
    keep: bool = False


class StartResult(WireStruct, frozen=True):
    """The process is running.

    Ours: strength of the sandbox (full or reduced), and the missing protections as sentences.
    """

    process_id: str
    sandbox_type: str
    sandbox_strength: str = ""
    sandbox_lacks: tuple[str, ...] = ()


class ProcessParams(WireStruct, frozen=True):
    """The id of a process."""

    process_id: str


class ReadParams(WireStruct, frozen=True):
    """Read retained output after a sequence number; waits up to `wait_ms` for any."""

    process_id: str
    after_seq: Count | None = None
    max_bytes: Count | None = None
    wait_ms: Count | None = None


class Chunk(WireStruct, frozen=True):
    """A piece of output; `chunk` is base64."""

    seq: int
    stream: str
    chunk: str


class ReadResult(WireStruct, frozen=True, omit_defaults=False):
    """Retained output, and the state of the process."""

    chunks: tuple[Chunk, ...]
    next_seq: int
    exited: bool
    exit_code: int | None
    closed: bool
    failure: str | None = None
    sandbox_denied: bool = False
    first_retained_seq: int | None = None  # ours
    has_more: bool | None = None  # ours: whether more is kept; if not, what follows is news
    lost: bool | UnsetType = UNSET  # ours: `exit_code` stands for an end that is not known


class WriteParams(WireStruct, frozen=True):
    """Input for a process; a write id is written at most once, however often it is sent."""

    process_id: str
    chunk: str
    write_id: str


class WriteResult(WireStruct, frozen=True):
    """Status: accepted, unknownProcess, stdinClosed or starting."""

    status: str


class SignalParams(WireStruct, frozen=True):
    """A signal for the process group: `interrupt`, or with the capability any signal name."""

    process_id: str
    signal: str


class TerminateResult(WireStruct, frozen=True):
    """Whether the process was still running."""

    running: bool


class ResizeParams(WireStruct, frozen=True):
    """Ours: new terminal size of a process."""

    process_id: str
    rows: int
    cols: int


class TakenParams(WireStruct, frozen=True):
    """Ours, a notification: the client has processed all events up to `seq`."""

    process_id: str
    seq: int


class ListedProcess(WireStruct, frozen=True, omit_defaults=False):
    """Ours: one process of the session."""

    process_id: str
    argv: tuple[str, ...]
    pid: int
    tty: bool
    started_at_ms: int
    next_seq: int
    exited: bool
    exit_code: int | None
    closed: bool
    stalled: str | None = None  # what it waits for: the code of a failure, or its reader
    lost: bool = False  # its keeper was lost: `exit_code` stands for an end that is not known


class ListResult(WireStruct, frozen=True):
    """Ours: the processes of the session, oldest first."""

    processes: tuple[ListedProcess, ...]


class OperatorProcess(WireStruct, frozen=True, omit_defaults=False):
    """Ours: a process of any session, and whether a connection has that session."""

    session_id: str
    attached: bool
    process: ListedProcess


class DetachedProcess(WireStruct, frozen=True):
    """Ours: a descendant that outlives the process that started it; ids are empty if forgotten."""

    pid: int
    command: str
    session_id: str = ""
    process_id: str = ""


class OperatorListResult(WireStruct, frozen=True):
    """Ours: all processes of the server, and their detached descendants."""

    processes: tuple[OperatorProcess, ...]
    detached: tuple[DetachedProcess, ...] = ()


class LabelParams(WireStruct, frozen=True):
    """Ours: selects all sessions with a label."""

    label: str


class EndResult(WireStruct, frozen=True, omit_defaults=False):
    """Ours: number of sessions that were ended."""

    sessions: int


class OperatorParams(WireStruct, frozen=True):
    """Ours: a process of any session."""

    session_id: str
    process_id: str


class OperatorReadParams(WireStruct, frozen=True):
    """Ours: a read from a process of any session."""

    session_id: str
    read: ReadParams


class OperatorSignalParams(WireStruct, frozen=True):
    """Ours: a signal for a process of any session."""

    session_id: str
    process_id: str
    signal: str


class PlaceParams(WireStruct, frozen=True):
    """Ours: a place, by the directory of its draft."""

    directory: str


class BindResult(WireStruct, frozen=True):
    """Ours: a token that restricts its clients to one place."""

    token: str


class Output(WireStruct, frozen=True, omit_defaults=False):
    """Notification: a piece of output; `chunk` is base64."""

    process_id: str
    seq: int
    stream: str
    chunk: str


class Exited(WireStruct, frozen=True, omit_defaults=False):
    """Notification: the process has exited; output of descendants may still follow."""

    process_id: str
    seq: int
    exit_code: int
    sandbox_denied: bool = False
    lost: bool | UnsetType = UNSET  # ours: `exit_code` stands for an end that is not known


class Closed(WireStruct, frozen=True, omit_defaults=False):
    """Notification: last event; the process has exited and all its output was sent."""

    process_id: str
    seq: int


class HttpTaken(WireStruct, frozen=True):
    """Ours, a notification: bytes of a body read so far; `is_over` cancels the rest."""

    request_id: str
    total_bytes: int
    is_over: bool = False


class HttpDelta(WireStruct, frozen=True, omit_defaults=False):
    """Notification: a piece of a streamed body, or its end."""

    request_id: str
    seq: int
    delta_base64: str
    done: bool
    error: str | None = None


OURS = Versions()

_PROTOCOL = "exec"


def agree(theirs: Versions | None, ours: Versions = OURS) -> int | None:
    """Return the newest version that both sides support; None for peers without versions (Codex).

    Raises `VersionRefused` if there is none. Without a version the peers use the common methods and
    capabilities.
    """
    if theirs is None:
        return None
    newest = min(ours.newest, theirs.newest)
    if newest < max(ours.oldest, theirs.oldest):
        raise VersionRefused(
            protocol=_PROTOCOL,
            ours_oldest=ours.oldest,
            ours_newest=ours.newest,
            theirs_protocol=_PROTOCOL,
            theirs_oldest=theirs.oldest,
            theirs_newest=theirs.newest,
        )
    return newest


def from_our_side(refused: VersionRefused) -> VersionRefused:
    """Swap the two sides of a `VersionRefused` that the other side raised."""
    return VersionRefused(
        protocol=refused.theirs_protocol,
        ours_oldest=refused.theirs_oldest,
        ours_newest=refused.theirs_newest,
        theirs_protocol=refused.protocol,
        theirs_oldest=refused.ours_oldest,
        theirs_newest=refused.ours_newest,
    )
