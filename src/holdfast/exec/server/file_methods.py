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
            "fs/open": self._streaming(OpenParams, lambda streams: streams.open),
            "fs/readBlock": self._streaming(ReadBlockParams, lambda streams: streams.read_block),
            "fs/writeBlock": self._streaming(WriteBlockParams, lambda streams: streams.write_block),
            "fs/close": self._streaming(HandleParams, lambda streams: streams.close),
        }

    async def close(self) -> None:
        """Close what the connection has opened, after all that it does with it."""
        if self._streams is not None:
            await self._hands.do(self._streams.close_all, lane=self._desk.number)

    def _serving(
        self, params: type[Params], method: Callable[[Place], Callable[[Params], object]]
    ) -> Handler[Params]:
        async def serve(asked: Params) -> object:
            place = (await self._desk.session("filesystem")).place
            return await self._hands.do(partial(method(place), asked))

        return Handler(params, serve)

    def _streaming(
        self, params: type[Params], method: Callable[[FileStreams], Callable[[Params], object]]
    ) -> Handler[Params]:
        """One after the other, so that no descriptor is closed while another call uses it."""

        async def serve(asked: Params) -> object:
            place = (await self._desk.session("filesystem")).place
            self._streams = self._streams or FileStreams(place)
            work = partial(method(self._streams), asked)
            return await self._hands.do(work, lane=self._desk.number)

        return Handler(params, serve)
