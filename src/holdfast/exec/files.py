"""The files of the machine behind an exec-server, by absolute path."""

from __future__ import annotations

import os
from typing import TypeVar

import pybase64

from holdfast.exec.core.answers import refused
from holdfast.exec.core.file_uri import path_of, uri_of
from holdfast.exec.failures import OutcomeUnknown
from holdfast.exec.line import Line
from holdfast.exec.server.model import (
    CopyParams,
    CreateDirectoryParams,
    DirectoryEntry,
    DirectoryResult,
    FileData,
    Metadata,
    PathParams,
    PathResult,
    ReadFileParams,
    RemoveParams,
    WalkOptions,
    WalkParams,
    WalkResult,
    WriteFileParams,
)
from holdfast.exec.wire import Wire
from holdfast.failures import Failure
from holdfast.rpc.failures import AnswerInvalid, ErrorResponse

Path = str | os.PathLike[str]
Result = TypeVar("Result")
Nothing = dict[str, object]


class Files:
    """Asks about files as often as needed, and changes them once.

    A change under way at a cut is not repeated: its outcome is unknown. Only for a write that is
    found out, by reading the file back.
    """

    def __init__(self, line: Line) -> None:
        self._line = line

    async def read(self, path: Path, *, follow_symlinks: bool = True) -> bytes:
        """The whole content of a file."""
        params = ReadFileParams(_uri(path), follow_symlinks=follow_symlinks)
        answer = await self._ask("fs/readFile", path, params, FileData)
        try:
            return pybase64.b64decode(answer.data_base64, validate=True)
        except ValueError as error:
            raise AnswerInvalid(method="fs/readFile", reason=str(error)) from error

    async def write(self, path: Path, data: bytes) -> None:
        """Make the whole content of a file this, or raise; after a cut, look whether it is."""
        encoded = pybase64.b64encode_as_string(data)
        params = WriteFileParams(_uri(path), data_base64=encoded)
        try:
            await self._change("fs/writeFile", path, params)
        except OutcomeUnknown as unknown:
            if not await self._holds(path, data):
                raise unknown from None

    async def metadata(self, path: Path) -> Metadata:
        """What is at a path; raises FileMissing if nothing is."""
        return await self._ask("fs/getMetadata", path, PathParams(_uri(path)), Metadata)

    async def canonical(self, path: Path) -> str:
        """The path without links in it."""
        answer = await self._ask("fs/canonicalize", path, PathParams(_uri(path)), PathResult)
        return os.fsdecode(path_of(answer.path))

    async def entries(self, path: Path) -> tuple[DirectoryEntry, ...]:
        """The names in a directory."""
        params = PathParams(_uri(path))
        return (await self._ask("fs/readDirectory", path, params, DirectoryResult)).entries

    async def walk(self, path: Path, options: WalkOptions) -> WalkResult:
        """All that is below a directory, as far as the options allow."""
        params = WalkParams(_uri(path), options=options)
        return await self._ask("fs/walk", path, params, WalkResult)

    async def create_directory(self, path: Path, *, recursive: bool = True) -> None:
        """Make a directory, with those above it if `recursive`."""
        params = CreateDirectoryParams(_uri(path), recursive=recursive)
        await self._change("fs/createDirectory", path, params)

    async def remove(self, path: Path, *, recursive: bool = False, force: bool = False) -> None:
        """Remove a file or a directory; with `force` it need not be there."""
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
            if self._line.failure is not None:
                raise
            return False

    async def _ask(self, method: str, path: Path, params: Wire, result: type[Result]) -> Result:
        try:
            return await self._line.call(method, params, result, repeats=True)
        except ErrorResponse as error:
            raise refused(error, subject=os.fspath(path)) from error

    async def _change(self, method: str, path: Path, params: Wire) -> None:
        try:
            await self._line.call(method, params, Nothing)
        except ErrorResponse as error:
            raise refused(error, subject=os.fspath(path)) from error


class _Remove(RemoveParams, frozen=True, omit_defaults=False):
    """Says both in so many words: what is absent would mean yes."""


def _uri(path: Path) -> str:
    return uri_of(os.fsencode(path))
