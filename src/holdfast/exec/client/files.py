"""File operations on the machine of an exec-server, by absolute path."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

import pybase64

from holdfast.exec.client.connection import CALL_LONGEST, Channel
from holdfast.exec.client.events import refused
from holdfast.exec.failures import FileFailed, OutcomeUnknown
from holdfast.exec.file_uri import path_of, uri_of
from holdfast.exec.protocol import WireStruct
from holdfast.exec.server.model import (
    Block,
    CloseParams,
    CopyParams,
    CreateDirectoryParams,
    DirectoryEntry,
    DirectoryResult,
    FileData,
    HandleParams,
    Metadata,
    OpenParams,
    PathParams,
    PathResult,
    ReadBlockParams,
    ReadFileParams,
    RemoveParams,
    WalkOptions,
    WalkParams,
    WalkResult,
    WriteBlockParams,
    WriteFileParams,
)
from holdfast.failures import Failure
from holdfast.rpc import Connection
from holdfast.rpc.failures import AnswerInvalid, ErrorResponse
from holdfast.world import IdMaker

Path = str | os.PathLike[str]
Result = TypeVar("Result")
Nothing = dict[str, object]

FILE_BYTES_MAX = 512 * 2**20
WHOLE_BYTES_MAX = 32 * 2**20
"""What is larger travels in blocks: no side takes messages of any size."""
_BLOCK_BYTES = 2**20


class RemoteFiles:
    """Reads are retried after a lost connection; changes are sent once.

    A change in flight when the connection is lost raises `OutcomeUnknown`, except a write, whose
    outcome is checked by reading the file back.
    """

    def __init__(self, channel: Channel, ids: IdMaker) -> None:
        self._channel, self._ids = channel, ids

    async def read(self, path: Path, *, follow_symlinks: bool = True) -> bytes:
        """Return the content of a file; a file over 32 MiB must not be changed meanwhile."""
        size = (await self.metadata(path)).size
        if size > FILE_BYTES_MAX:
            reason = f"file exceeds the limit of {FILE_BYTES_MAX} bytes"
            raise FileFailed(path=os.fspath(path), reason=reason)
        if size > WHOLE_BYTES_MAX and follow_symlinks:
            return await self._read_in_blocks(path)
        params = ReadFileParams(_uri(path), follow_symlinks=follow_symlinks)
        answer = await self._ask("fs/readFile", path, params, FileData)
        return _decoded("fs/readFile", answer.data_base64)

    async def write(self, path: Path, data: bytes) -> None:
        """Replace the content of a file; after a lost connection the content is compared."""
        try:
            if len(data) > WHOLE_BYTES_MAX:
                await self._write_in_blocks(path, data)
            else:
                encoded = pybase64.b64encode_as_string(data)
                params = WriteFileParams(_uri(path), data_base64=encoded)
                await self._change("fs/writeFile", path, params)
        except OutcomeUnknown as unknown:
            if not await self._holds(path, data):
                raise unknown from None

    async def metadata(self, path: Path) -> Metadata:
        """Return metadata of a path; raises `FileMissing`."""
        return await self._ask("fs/getMetadata", path, PathParams(_uri(path)), Metadata)

    async def canonical(self, path: Path) -> str:
        """Return the path with symlinks resolved."""
        answer = await self._ask("fs/canonicalize", path, PathParams(_uri(path)), PathResult)
        return os.fsdecode(path_of(answer.path))

    async def entries(self, path: Path) -> tuple[DirectoryEntry, ...]:
        """Return the entries of a directory."""
        params = PathParams(_uri(path))
        return (await self._ask("fs/readDirectory", path, params, DirectoryResult)).entries

    async def walk(self, path: Path, options: WalkOptions) -> WalkResult:
        """Return the tree below a directory, within the limits of the options."""
        params = WalkParams(_uri(path), options=options)
        return await self._ask("fs/walk", path, params, WalkResult)

    async def create_directory(self, path: Path, *, recursive: bool = True) -> None:
        """Create a directory, with its parents if `recursive`."""
        params = CreateDirectoryParams(_uri(path), recursive=recursive)
        await self._change("fs/createDirectory", path, params)

    async def remove(self, path: Path, *, recursive: bool = False, force: bool = False) -> None:
        """Remove a file or a directory; with `force` a missing one is not an error."""
        params = _Remove(_uri(path), recursive=recursive, force=force)
        await self._change("fs/remove", path, params)

    async def copy(self, source: Path, destination: Path, *, recursive: bool = False) -> None:
        """Copy a file, or with `recursive` a directory."""
        params = CopyParams(_uri(source), _uri(destination), recursive=recursive)
        await self._change("fs/copy", source, params)

    async def _holds(self, path: Path, data: bytes) -> bool:
        try:
            return await self.read(path) == data
        except Failure:
            if self._channel.failure is not None:
                raise
            return False

    async def _read_in_blocks(self, path: Path) -> bytes:
        while True:
            try:
                async with self._opened(path, "read") as (connection, handle):
                    blocks: list[bytes] = []
                    is_whole = False
                    while not is_whole:
                        at = len(blocks) * _BLOCK_BYTES
                        asked = ReadBlockParams(handle, at, _BLOCK_BYTES)
                        block = await self._on(connection, "fs/readBlock", asked, Block)
                        blocks.append(_decoded("fs/readBlock", block.chunk))
                        is_whole = block.eof
                    return b"".join(blocks)
            except OutcomeUnknown:
                # What was open is closed with its connection; nothing was changed.
                continue

    async def _write_in_blocks(self, path: Path, data: bytes) -> None:
        async with self._opened(path, "replace") as (connection, handle):
            for at in range(0, len(data), _BLOCK_BYTES):
                chunk = pybase64.b64encode_as_string(data[at : at + _BLOCK_BYTES])
                asked = WriteBlockParams(handle, at, chunk)
                await self._on(connection, "fs/writeBlock", asked, Nothing)

    @asynccontextmanager
    async def _opened(self, path: Path, mode: str) -> AsyncGenerator[tuple[Connection, str]]:
        """Open a file on one connection; it is closed with that connection at the latest."""
        connection = await self._channel.wait_connected()
        handle = str(self._ids.make("file"))

        async def discard() -> None:
            with suppress(Failure):
                params = CloseParams(handle, discard=True)
                await self._on(connection, "fs/close", params, Nothing)

        is_written = False
        try:
            asked = OpenParams(_uri(path), handle_id=handle, mode=mode)
            await self._on(connection, "fs/open", asked, HandleParams)
            yield connection, handle
            # Not before this is answered has the file its new content.
            if mode == "replace":
                await self._on(connection, "fs/close", CloseParams(handle), Nothing)
                is_written = True
        except ErrorResponse as error:
            raise refused(error, subject=os.fspath(path)) from error
        finally:
            if not is_written:
                self._channel.start_soon(discard)

    async def _on(
        self, connection: Connection, method: str, params: WireStruct, result: type[Result]
    ) -> Result:
        return await self._channel.ask(connection, method, params, result, timeout=CALL_LONGEST)

    async def _ask(
        self, method: str, path: Path, params: WireStruct, result: type[Result]
    ) -> Result:
        try:
            return await self._channel.call(method, params, result, repeats=True)
        except ErrorResponse as error:
            raise refused(error, subject=os.fspath(path)) from error

    async def _change(self, method: str, path: Path, params: WireStruct) -> None:
        try:
            await self._channel.call(method, params, Nothing)
        except ErrorResponse as error:
            raise refused(error, subject=os.fspath(path)) from error


class _Remove(RemoveParams, frozen=True, omit_defaults=False):
    """Encodes both flags always: an absent one would mean true."""


def _decoded(method: str, data: str) -> bytes:
    try:
        return pybase64.b64decode(data, validate=True)
    except ValueError as error:
        raise AnswerInvalid(method=method, reason=str(error)) from error


def _uri(path: Path) -> str:
    return uri_of(os.fsencode(path))
