"""Parameters and results of the file, HTTP and environment methods, as in Codex."""

from __future__ import annotations

from msgspec import UNSET, Raw, UnsetType

from holdfast.exec.protocol import Count, StartParams, WireStruct


class StartAsked(StartParams, frozen=True):
    """A process to start, with Codex options that this server refuses."""

    enforce_managed_network: bool = False
    network_proxy: dict[str, object] | None = None


class ReadAnswer(WireStruct, frozen=True, omit_defaults=False, kw_only=True):
    """As `protocol.ReadResult`, with chunks that are JSON already.

    Members that may be null come first: the encoder searches for null, and would scan all output.
    """

    failure: str | None
    exit_code: int | None
    next_seq: int
    exited: bool
    closed: bool
    sandbox_denied: bool
    lost: bool | UnsetType
    first_retained_seq: int
    has_more: bool
    chunks: Raw


class PathParams(WireStruct, frozen=True):
    """A path, as a file URI."""

    path: str
    sandbox: dict[str, object] | None = None


class ReadFileParams(PathParams, frozen=True):
    """A whole file to read."""

    follow_symlinks: bool = True


class FileData(WireStruct, frozen=True, omit_defaults=False):
    """The content of a file, in base64."""

    data_base64: str


class WriteFileParams(PathParams, frozen=True, kw_only=True):
    """A whole file to write; its content is base64."""

    data_base64: str


class WriteFileResult(WireStruct, frozen=True):
    """Ours: whether a file was overwritten in place because it could not be replaced."""

    in_place: bool | UnsetType = UNSET


class CreateDirectoryParams(PathParams, frozen=True):
    """A directory to make, with those above it."""

    recursive: bool = True


class RemoveParams(PathParams, frozen=True):
    """What to remove; with `force` it need not be there."""

    recursive: bool = True
    force: bool = True


class CopyParams(WireStruct, frozen=True):
    """What to copy, and where to."""

    source_path: str
    destination_path: str
    recursive: bool
    sandbox: dict[str, object] | None = None


class Metadata(WireStruct, frozen=True, omit_defaults=False):
    """Metadata of a path; symlinks are followed."""

    is_directory: bool
    is_file: bool
    is_symlink: bool
    size: int
    created_at_ms: int
    modified_at_ms: int


class PathResult(WireStruct, frozen=True, omit_defaults=False):
    """A path, as a file URI."""

    path: str


class DirectoryEntry(WireStruct, frozen=True, omit_defaults=False):
    """One name in a directory; links are followed."""

    file_name: str
    is_directory: bool
    is_file: bool


class DirectoryResult(WireStruct, frozen=True, omit_defaults=False):
    """The names in a directory."""

    entries: tuple[DirectoryEntry, ...]


class WalkOptions(WireStruct, frozen=True):
    """Limits of a walk."""

    max_depth: int
    max_directories: int
    max_entries: int
    follow_directory_symlinks: bool
    prune_hidden_directories: bool = False


class WalkParams(PathParams, frozen=True, kw_only=True):
    """A directory to walk through."""

    options: WalkOptions


class WalkEntry(WireStruct, frozen=True, omit_defaults=False):
    """One entry of a walk: `file` or `directory`."""

    path: str
    kind: str


class WalkError(WireStruct, frozen=True, omit_defaults=False):
    """A directory that could not be read."""

    path: str
    message: str


class WalkResult(WireStruct, frozen=True, omit_defaults=False):
    """Entries of a walk, breadth first; `truncated` if it reached a limit."""

    entries: tuple[WalkEntry, ...]
    errors: tuple[WalkError, ...]
    truncated: bool


class OpenParams(PathParams, frozen=True, kw_only=True):
    """A file to open for blocks: `read`, or `replace` to write new content."""

    handle_id: str
    mode: str = "read"


class HandleParams(WireStruct, frozen=True, omit_defaults=False):
    """An open file."""

    handle_id: str


class CloseParams(WireStruct, frozen=True):
    """A file to close; ours: `discard` drops the new content."""

    handle_id: str
    discard: bool = False


class ReadBlockParams(WireStruct, frozen=True):
    """A block to read from an open file."""

    handle_id: str
    offset: Count
    len: int


class Block(WireStruct, frozen=True, omit_defaults=False):
    """A block of a file, in base64; `eof` at its end."""

    chunk: str
    eof: bool


class WriteBlockParams(WireStruct, frozen=True):
    """A block, in base64, to write to an open file."""

    handle_id: str
    offset: Count
    chunk: str


class ConfigParams(WireStruct, frozen=True):
    """Directory whose configuration is requested; this server has none."""

    cwd: str


class ConfigLayers(WireStruct, frozen=True, omit_defaults=False):
    """Layers of a configuration; always empty."""

    layers: tuple[object, ...] = ()
    cloud_insertion_index: int = 0


class ConfigResult(WireStruct, frozen=True, omit_defaults=False):
    """Where a configuration would be, and that there is none."""

    user_home_dir: str | None
    codex_home_dir: str | None
    hostname: str
    config: ConfigLayers = ConfigLayers()
    requirements: ConfigLayers = ConfigLayers()


class HttpHeader(WireStruct, frozen=True):
    """One header; the value of an environment variable of the server is appended."""

    name: str
    value: str
    value_env_var: str | None = None


class HttpParams(WireStruct, frozen=True):
    """An HTTP request to make.

    Ours: `unread_bytes_max` is how much of a streamed body the client buffers.
    """

    method: str
    url: str
    request_id: str
    headers: tuple[HttpHeader, ...] = ()
    body_base64: str | None = None
    timeout_ms: Count | None = None
    redirect_policy: str = "follow"
    stream_response: bool = False
    unread_bytes_max: int | None = None


class HttpAnswerHeader(WireStruct, frozen=True, omit_defaults=False):
    """One header of an answer."""

    name: str
    value: str


class HttpResult(WireStruct, frozen=True, omit_defaults=False):
    """The answer to a web request; a streamed one has its body in deltas.

    Ours: where `is_paced`, no more of the body is told than the client holds unread, and the
    client says what it has taken.
    """

    status: int
    headers: tuple[HttpAnswerHeader, ...]
    body_base64: str
    is_paced: bool | UnsetType = UNSET
