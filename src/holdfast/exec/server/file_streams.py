"""Files that a connection holds open to read or write in blocks."""

from __future__ import annotations

import errno
import os
from contextlib import closing

import pybase64

from holdfast.exec.failures import FileMissing, RequestInvalid, RequestUnfit
from holdfast.exec.ports import PlaceFiles
from holdfast.exec.server.files import (
    asked_path,
    encoded,
    naming,
    open_regular,
)
from holdfast.exec.server.model import (
    Block,
    CloseParams,
    HandleParams,
    OpenParams,
    ReadBlockParams,
    WriteBlockParams,
)
from holdfast.exec.server.replacement import Replacement

_OPEN_MAX = 128
_HANDLE_BYTES_MAX = 32
_BLOCK_BYTES_MAX = 2**20


class FileStreams:
    """The open files of one connection; one call at a time.

    A file that is written anew has its new content when it is closed; if the connection is lost
    before, it keeps the old one.
    """

    def __init__(self) -> None:
        self._files: dict[str, int | Replacement] = {}

    def open(self, place: PlaceFiles, asked: OpenParams) -> HandleParams:
        """Open a file under an id of the client's: to read it, or to write it anew."""
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
        """Read at an offset, whatever was read before."""
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
        """Write at an offset; what is skipped reads as zeros."""
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
        """Close a file, which now has its new content; one that is not open is closed already."""
        file = self._files.pop(asked.handle_id, None)
        if isinstance(file, Replacement):
            with naming(asked.handle_id.encode()), closing(file):
                if not asked.discard:
                    file.commit()
        elif file is not None:
            os.close(file)
        return {}

    def close_all(self) -> None:
        """Close every file; those that were being written keep their old content."""
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
