"""The methods of files: each is carried out away from the loop, in the session's place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from holdfast.confine import Place
from holdfast.exec.ports import PlaceFiles
from holdfast.exec.server.desk import Desk, Handlers
from holdfast.exec.server.file_streams import FileStreams
from holdfast.exec.server.files import Files
from holdfast.exec.server.hands import Hands
from holdfast.exec.server.launching import Server, gated
from holdfast.exec.server.model import (
    CloseParams,
    CopyParams,
    CreateDirectoryParams,
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

    def __init__(self, desk: Desk, hands: Hands, own: Server) -> None:
        self._desk, self._hands, self._own = desk, hands, own
        self._streams = FileStreams()

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
            "fs/open": self._serving(
                OpenParams, lambda place: partial(self._streams.open, place), is_in_lane=True
            ),
            "fs/readBlock": self._streaming(ReadBlockParams, self._streams.read_block),
            "fs/writeBlock": self._streaming(WriteBlockParams, self._streams.write_block),
            "fs/close": self._streaming(CloseParams, self._streams.close),
        }

    async def close(self) -> None:
        """Close what the connection has opened, after all that it does with it."""
        await self._hands.do(self._streams.close_all, lane=self._desk.number)

    def _serving(
        self,
        params: type[Params],
        method: Callable[[PlaceFiles], Callable[[Params], object]],
        *,
        is_in_lane: bool = False,
    ) -> Handler[Params]:
        lane = self._desk.number if is_in_lane else None

        async def serve(asked: Params) -> object:
            site = (await self._desk.session("filesystem")).site
            async with site.reached() as place:
                sandbox = getattr(asked, "sandbox", None)
                work = partial(self._act, place, sandbox, method, asked)
                return await self._hands.do(work, lane=lane)

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
        """One after the other, so that no descriptor is closed while another call uses it."""

        async def serve(asked: Params) -> object:
            await self._desk.session("filesystem")
            return await self._hands.do(partial(method, asked), lane=self._desk.number)

        return Handler(params, serve)
