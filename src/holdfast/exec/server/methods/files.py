"""File methods of a connection; each runs in a worker thread, in the session's place."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from typing import TypeVar

import pybase64

from holdfast.confine import Place
from holdfast.exec.failures import FileMissing, RequestInvalid, RequestUnfit
from holdfast.exec.ports import PlaceFiles
from holdfast.exec.server.context import ConnectionContext, Handlers
from holdfast.exec.server.file_replacement import Replacement
from holdfast.exec.server.files import (
    FileOperations,
    TreeOperations,
    asked_path,
    encoded,
    naming,
    open_regular,
)
from holdfast.exec.server.launcher import ServerInfo, gated
from holdfast.exec.server.model import (
    Block,
    CloseParams,
    CopyParams,
    CreateDirectoryParams,
    HandleParams,
    OpenParams,
    PathParams,
    ReadBlockParams,
    ReadFileParams,
    RemoveParams,
    WalkParams,
    WriteBlockParams,
    WriteFileParams,
)
from holdfast.exec.server.worker_threads import WorkerThreads
from holdfast.rpc import Handler

_OPEN_MAX = 128
_HANDLE_BYTES_MAX = 32
_BLOCK_BYTES_MAX = 2**20


class FileStreams:
    """Open files of one connection; one call at a time.

    A file that is being replaced gets its new content on close; if the connection is lost before,
    it keeps the old content.
    """

    def __init__(self) -> None:
        self._files: dict[str, int | Replacement] = {}

    def open(self, place: PlaceFiles, asked: OpenParams) -> HandleParams:
        """Open a file under a handle of the client: for reading, or to replace it."""
        path = asked_path(asked)
        if len(asked.handle_id.encode()) > _HANDLE_BYTES_MAX:
            reason = f"file handle ID must not exceed {_HANDLE_BYTES_MAX} bytes"
            raise RequestUnfit(reason=reason)
        if asked.handle_id in self._files:
            raise RequestUnfit(reason=f"file handle `{asked.handle_id}` already exists")
        if len(self._files) >= _OPEN_MAX:
            raise RequestUnfit(reason=f"at most {_OPEN_MAX} files may be open per connection")
        with naming(path):
            self._files[asked.handle_id] = _opened(place, path, asked.mode)
        return HandleParams(asked.handle_id)

    def read_block(self, asked: ReadBlockParams) -> Block:
        """Read at an offset."""
        if not 1 <= asked.len <= _BLOCK_BYTES_MAX:
            reason = f"file read block length must be between 1 and {_BLOCK_BYTES_MAX}"
            raise RequestUnfit(reason=reason)
        file = self._file(asked.handle_id)
        with naming(asked.handle_id.encode()):
            if isinstance(file, Replacement):
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            data = os.pread(file, asked.len, asked.offset)
        return Block(encoded(data), len(data) < asked.len)

    def write_block(self, asked: WriteBlockParams) -> dict[str, object]:
        """Write at an offset; gaps read as zeros."""
        try:
            data = pybase64.b64decode(asked.chunk, validate=True)
        except ValueError as error:
            raise RequestInvalid(reason=str(error)) from error
        file = self._file(asked.handle_id)
        with naming(asked.handle_id.encode()):
            if not isinstance(file, Replacement):
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            try:
                file.write(data, at=asked.offset)
            except OSError:
                # Its content has a hole now, which no close may put in place.
                self._files.pop(asked.handle_id)
                file.close()
                raise
        return {}

    def close(self, asked: CloseParams) -> dict[str, object]:
        """Close a file, which installs its new content; an unknown handle is ignored."""
        file = self._files.pop(asked.handle_id, None)
        if isinstance(file, Replacement):
            with naming(asked.handle_id.encode()), closing(file):
                if not asked.discard:
                    file.commit()
        elif file is not None:
            os.close(file)
        return {}

    def close_all(self) -> None:
        """Close every file; those being replaced keep their old content."""
        while self._files:
            _, file = self._files.popitem()
            if isinstance(file, Replacement):
                file.close()
            else:
                os.close(file)

    def _file(self, handle: str) -> int | Replacement:
        if (file := self._files.get(handle)) is None:
            raise FileMissing(path=handle, reason=f"unknown file handle `{handle}`")
        return file


def _opened(place: PlaceFiles, path: bytes, mode: str) -> int | Replacement:
    match mode:
        case "read":
            return open_regular(place, path)
        case "replace":
            return Replacement(place, path)
        case _:
            reason = f"unknown variant `{mode}`, expected `read` or `replace`"
            raise RequestInvalid(reason=reason)


Params = TypeVar("Params")


class FileMethods:
    """File methods of one connection; its open files are closed with it."""

    def __init__(self, context: ConnectionContext, workers: WorkerThreads, own: ServerInfo) -> None:
        self._context, self._workers, self._own = context, workers, own
        self._streams = FileStreams()

    def handlers(self) -> Handlers:
        return {
            "fs/readFile": self._serving(
                ReadFileParams, lambda place: FileOperations(place).read_file
            ),
            "fs/writeFile": self._serving(
                WriteFileParams, lambda place: FileOperations(place).write_file
            ),
            "fs/createDirectory": self._serving(
                CreateDirectoryParams, lambda place: FileOperations(place).create_directory
            ),
            "fs/getMetadata": self._serving(
                PathParams, lambda place: FileOperations(place).metadata
            ),
            "fs/canonicalize": self._serving(
                PathParams, lambda place: FileOperations(place).canonicalize
            ),
            "fs/readDirectory": self._serving(
                PathParams, lambda place: FileOperations(place).read_directory
            ),
            "fs/walk": self._serving(WalkParams, lambda place: TreeOperations(place).walk),
            "fs/copy": self._serving(CopyParams, lambda place: TreeOperations(place).copy),
            "fs/remove": self._serving(RemoveParams, lambda place: TreeOperations(place).remove),
            "fs/open": self._serving(
                OpenParams, lambda place: partial(self._streams.open, place), is_in_lane=True
            ),
            "fs/readBlock": self._streaming(ReadBlockParams, self._streams.read_block),
            "fs/writeBlock": self._streaming(WriteBlockParams, self._streams.write_block),
            "fs/close": self._streaming(CloseParams, self._streams.close),
        }

    async def close(self) -> None:
        """Close the open files, after the calls in progress."""
        await self._workers.do(self._streams.close_all, lane=self._context.number)

    def _serving(
        self,
        params: type[Params],
        method: Callable[[PlaceFiles], Callable[[Params], object]],
        *,
        is_in_lane: bool = False,
    ) -> Handler[Params]:
        lane = self._context.number if is_in_lane else None

        async def serve(asked: Params) -> object:
            site = (await self._context.session("filesystem")).site
            async with site.reached() as place:
                sandbox = getattr(asked, "sandbox", None)
                work = partial(self._act, place, sandbox, method, asked)
                return await self._workers.do(work, lane=lane)

        return Handler(params, serve)

    def _act(
        self,
        place: Place,
        sandbox: Mapping[str, object] | None,
        method: Callable[[PlaceFiles], Callable[[Params], object]],
        asked: Params,
    ) -> object:
        return method(gated(place, sandbox, self._own))(asked)

    def _streaming(
        self, params: type[Params], method: Callable[[Params], object]
    ) -> Handler[Params]:
        """Serialise calls, so that no descriptor is closed while another call uses it."""

        async def serve(asked: Params) -> object:
            await self._context.session("filesystem")
            return await self._workers.do(partial(method, asked), lane=self._context.number)

        return Handler(params, serve)
