"""The methods of files: each is carried out away from the loop, in the session's place."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from holdfast.exec.place import Place
from holdfast.exec.server.desk import Desk, Handlers
from holdfast.exec.server.file_streams import FileStreams
from holdfast.exec.server.files import Files
from holdfast.exec.server.hands import Hands
from holdfast.exec.server.model import (
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
from holdfast.exec.server.trees import Trees
from holdfast.rpc import Handler

Params = TypeVar("Params")


class FileMethods:
    """Serves one connection; the files that it opens are closed with it."""

    def __init__(self, desk: Desk, hands: Hands) -> None:
        self._desk, self._hands = desk, hands
        self._streams: FileStreams | None = None

    def handlers(self) -> Handlers:
        """Who serves which method."""
        return {
            "fs/readFile": self._serving(ReadFileParams, lambda place: Files(place).read_file),
            "fs/writeFile": self._serving(WriteFileParams, lambda place: Files(place).write_file),
            "fs/createDirectory": self._serving(
                CreateDirectoryParams, lambda place: Files(place).create_directory
            ),
            "fs/getMetadata": self._serving(PathParams, lambda place: Files(place).metadata),
            "fs/canonicalize": self._serving(PathParams, lambda place: Files(place).canonicalize),
            "fs/readDirectory": self._serving(
                PathParams, lambda place: Files(place).read_directory
            ),
            "fs/walk": self._serving(WalkParams, lambda place: Trees(place).walk),
            "fs/copy": self._serving(CopyParams, lambda place: Trees(place).copy),
            "fs/remove": self._serving(RemoveParams, lambda place: Trees(place).remove),
            "fs/open": self._serving(OpenParams, lambda place: self._opened(place).open),
            "fs/readBlock": self._serving(
                ReadBlockParams, lambda place: self._opened(place).read_block
            ),
            "fs/writeBlock": self._serving(
                WriteBlockParams, lambda place: self._opened(place).write_block
            ),
            "fs/close": self._serving(HandleParams, lambda place: self._opened(place).close),
        }

    def close(self) -> None:
        """Close what the connection has opened."""
        if self._streams is not None:
            self._streams.close_all()

    def _serving(
        self, params: type[Params], method: Callable[[Place], Callable[[Params], object]]
    ) -> Handler[Params]:
        async def serve(asked: Params) -> object:
            place = (await self._desk.session("filesystem")).place
            return await self._hands.do(partial(method(place), asked))

        return Handler(params, serve)

    def _opened(self, place: Place) -> FileStreams:
        if self._streams is None:
            self._streams = FileStreams(place)
        return self._streams
