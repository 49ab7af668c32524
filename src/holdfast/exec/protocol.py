"""What an exec-server and its clients say to each other, as the Codex ones do.

Members that we do not know are ignored, so that newer peers can talk to us. What is ours alone is
marked so, and is used only where the other side has said that it has the capability.
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
    """The form of every message on this wire; what has its default value is not written."""


class OutputStream(StrEnum):
    """Where output came from."""

    STDOUT = "stdout"
    STDERR = "stderr"
    PTY = "pty"


class Versions(WireStruct, frozen=True, omit_defaults=False):
    """Ours: the oldest and the newest version of this wire that one side speaks."""

    oldest: int = 1
    newest: int = 1


class InitializeParams(WireStruct, frozen=True):
    """How a client introduces itself, and which session it wants back.

    Ours: `unread_bytes_max` is how much of each process the client holds for a slow reader. `label`
    is a word by which an operator can end the session, and others with the same label.
    """

    client_name: str
    resume_session_id: str | None = None
    unread_bytes_max: int | None = None
    versions: Versions | None = None  # ours; whoever names none speaks as Codex does
    label: str = ""


class ShellInfo(WireStruct, frozen=True):
    """The shell that commands are meant for."""

    name: str
    path: str


class ServerCapabilities(WireStruct, frozen=True):
    """What this server can do beyond the common ground; absent means no."""

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
    """What a client may want to know about the machine behind the server."""

    shell: ShellInfo
    cwd: str | None = None
    user_home_dir: str | None = None
    platform_os: str | None = None
    temp_dir: str | None = None
    executor_version: str | None = None
    capabilities: ServerCapabilities = ServerCapabilities()


class InitializeResult(WireStruct, frozen=True):
    """The session that the connection now has.

    Ours: so much of each process (`unread_bytes_max`) is told, and no more until the client says
    what it has taken.
    """

    session_id: str
    environment_info: EnvironmentInfo | None = None
    unread_bytes_max: int | None = None
    versions: Versions | None = None  # ours, for those who named theirs


class EnvPolicy(WireStruct, frozen=True):
    """Which of the server's own variables a process gets."""

    inherit: str  # all, core or none
    ignore_default_excludes: bool
    exclude: tuple[str, ...]
    set: dict[str, str]
    include_only: tuple[str, ...]


class StartParams(WireStruct, frozen=True):
    """A process to start; `cwd` is a file URI.

    Ours: `rows` and `cols` are the size of its terminal from the start. If `keep`, it is kept until
    it ends by itself or is ended, also if no client comes back for its session in time.
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
    """The process runs.

    Ours: of one that is shut in, whether that is a full sandbox or a reduced one, and what that one
    does not do that it should, in sentences.
    """

    process_id: str
    sandbox_type: str
    sandbox_strength: str = ""
    sandbox_lacks: tuple[str, ...] = ()


class ProcessParams(WireStruct, frozen=True):
    """A process, and nothing else."""

    process_id: str


class ReadParams(WireStruct, frozen=True):
    """Which output is wanted, how much of it, and how long to wait for any."""

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
    """The output that is still kept, and how far the process has come."""

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
    """Input for a process; the same write id is written once, however often it is sent."""

    process_id: str
    chunk: str
    write_id: str


class WriteResult(WireStruct, frozen=True):
    """accepted, unknownProcess, stdinClosed or starting."""

    status: str


class SignalParams(WireStruct, frozen=True):
    """A signal for the group of a process; `interrupt`, and with the capability any other."""

    process_id: str
    signal: str


class TerminateResult(WireStruct, frozen=True):
    """Whether the process was still running."""

    running: bool


class ResizeParams(WireStruct, frozen=True):
    """Ours: the new size of a process's terminal."""

    process_id: str
    rows: int
    cols: int


class TakenParams(WireStruct, frozen=True):
    """Ours, and news: the client needs nothing of a process up to this event any more."""

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
    """Ours: what a process has started and left running; the ids are empty if it is forgotten."""

    pid: int
    command: str
    session_id: str = ""
    process_id: str = ""


class OperatorListResult(WireStruct, frozen=True):
    """Ours: all processes of the server, and what they have started and left running."""

    processes: tuple[OperatorProcess, ...]
    detached: tuple[DetachedProcess, ...] = ()


class LabelParams(WireStruct, frozen=True):
    """Ours: all sessions of a label."""

    label: str


class EndResult(WireStruct, frozen=True, omit_defaults=False):
    """Ours: how many sessions were ended."""

    sessions: int


class OperatorParams(WireStruct, frozen=True):
    """Ours: a process of any session."""

    session_id: str
    process_id: str


class OperatorReadParams(WireStruct, frozen=True):
    """Ours: what is wanted of a process of any session."""

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
    """Ours: a token; whoever shows it works in one place, and nowhere else."""

    token: str


class Output(WireStruct, frozen=True, omit_defaults=False):
    """News: a piece of output; `chunk` is base64."""

    process_id: str
    seq: int
    stream: str
    chunk: str


class Exited(WireStruct, frozen=True, omit_defaults=False):
    """News: the process has ended; output may still follow."""

    process_id: str
    seq: int
    exit_code: int
    sandbox_denied: bool = False
    lost: bool | UnsetType = UNSET  # ours: `exit_code` stands for an end that is not known


class Closed(WireStruct, frozen=True, omit_defaults=False):
    """News: the process has ended and all its output has been told."""

    process_id: str
    seq: int


class HttpTaken(WireStruct, frozen=True):
    """Ours, and news: so much of a body was read in all; `is_over`: no more of it is wanted."""

    request_id: str
    total_bytes: int
    is_over: bool = False


class HttpDelta(WireStruct, frozen=True, omit_defaults=False):
    """News: a piece of a streamed body, or its end."""

    request_id: str
    seq: int
    delta_base64: str
    done: bool
    error: str | None = None


# Agree on a version of the wire with the other side, or say that there is none.

OURS = Versions()

_PROTOCOL = "exec"


def agree(theirs: Versions | None, ours: Versions = OURS) -> int | None:
    """The newest version that both sides speak; None with one who names none, as Codex does.

    What then is spoken is what all have in common, and what capabilities add to it.
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
    """What the other side said about the two of us, as we would say it."""
    return VersionRefused(
        protocol=refused.theirs_protocol,
        ours_oldest=refused.theirs_oldest,
        ours_newest=refused.theirs_newest,
        theirs_protocol=refused.protocol,
        theirs_oldest=refused.ours_oldest,
        theirs_newest=refused.ours_newest,
    )
