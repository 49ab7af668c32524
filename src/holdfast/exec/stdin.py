"""The input of one process: every piece exactly once, in order, one at a time."""

from __future__ import annotations

from collections import deque
from copy import copy
from dataclasses import dataclass, field

import anyio
import pybase64

from holdfast.exec.core.answers import refused
from holdfast.exec.failures import ProcessUnknown, StdinClosed
from holdfast.exec.line import Line
from holdfast.exec.wire import ProcessParams, WriteParams, WriteResult
from holdfast.failures import Failure
from holdfast.rpc.failures import ConnectionClosed, ErrorResponse

WAITING_BYTES_MAX = 1024 * 1024
_CHUNK_BYTES = 256 * 1024
_STARTING_PAUSE = 0.02


@dataclass(eq=False, slots=True)
class _Piece:
    """One write, or the close, on its way."""

    data: bytes | None
    is_begun: bool = False
    settled: anyio.Event = field(default_factory=anyio.Event)
    failure: Failure | None = None


class Stdin:
    """Writes pieces in the order of their arrival; once one fails, so do all after it.

    A piece under way at a cut is sent again under its id, which the server writes only once. Who
    stops waiting for a piece takes it back whole, or not at all once it is begun.
    """

    def __init__(self, process: str, line: Line, *, mark: str) -> None:
        self._process, self._line, self._mark = process, line, mark
        self._waiting: deque[_Piece] = deque()
        self._waiting_bytes = 0
        self._room = anyio.Event()
        self._written = 0
        self._failure: Failure | None = None

    @property
    def has_room(self) -> bool:
        """Whether more may be put without growing for ever."""
        return self._waiting_bytes < WAITING_BYTES_MAX

    def put(self, data: bytes) -> None:
        """Write as soon as it can be; raise if nothing can be written any more."""
        self._add(_Piece(data))

    async def wait_room(self) -> None:
        """Wait until more may be put; raise if nothing can be written any more."""
        while not self.has_room and self._failure is None:
            await self._room.wait()
        if self._failure is not None:
            raise copy(self._failure)

    async def write(self, data: bytes) -> None:
        """Return once the server has taken all of it."""
        await self.wait_room()
        await self._settled(_Piece(data))

    async def close(self) -> None:
        """Let the process see the end of its input, after all that was put."""
        await self._settled(_Piece(None))

    async def flushed(self) -> None:
        """Wait until nothing is waiting to be written; raise what kept it from that."""
        while self._waiting:
            await self._waiting[-1].settled.wait()
        if self._failure is not None:
            raise copy(self._failure)

    async def _settled(self, piece: _Piece) -> None:
        self._add(piece)
        try:
            await piece.settled.wait()
        finally:
            if not piece.is_begun and not piece.settled.is_set():
                self._waiting.remove(piece)
                self._forget(piece)
        if piece.failure is not None:
            raise copy(piece.failure)

    def _add(self, piece: _Piece) -> None:
        failure = self._failure or self._line.failure
        if failure is not None:
            raise copy(failure)
        self._waiting.append(piece)
        self._waiting_bytes += len(piece.data or b"")
        if len(self._waiting) == 1:
            self._line.start_soon(self._write_all)

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                pieces = self._next_pieces()
                failure = self._failure or await self._outcome(pieces)
                if failure is None and pieces[0].data is None:
                    self._failure = StdinClosed(process=self._process)
                self._failure = self._failure or failure
                for _ in pieces:
                    self._settle(self._waiting.popleft(), failure)
        finally:
            while self._waiting:  # the client was closed
                closed = self._line.failure or ConnectionClosed(reason="closed by us")
                self._settle(self._waiting.popleft(), closed)

    def _next_pieces(self) -> list[_Piece]:
        """As many pieces as one request carries, but at least one; a close stands alone."""
        pieces: list[_Piece] = []
        size = 0
        for piece in self._waiting:
            size += len(piece.data or b"")
            if pieces and (piece.data is None or size > _CHUNK_BYTES):
                break
            piece.is_begun = True
            pieces.append(piece)
            if piece.data is None:
                break
        return pieces

    async def _outcome(self, pieces: list[_Piece]) -> Failure | None:
        try:
            if pieces[0].data is None:
                params = ProcessParams(self._process)
                await self._line.call("process/closeStdin", params, dict[str, object])
            else:
                data = b"".join(piece.data or b"" for piece in pieces)
                for first in range(0, len(data), _CHUNK_BYTES):
                    await self._write_chunk(data[first : first + _CHUNK_BYTES])
        except ErrorResponse as error:
            return refused(error, subject=self._process)
        except Failure as failure:
            return failure
        return None

    async def _write_chunk(self, data: bytes) -> None:
        self._written += 1
        chunk = pybase64.b64encode_as_string(data)
        params = WriteParams(self._process, chunk, f"{self._mark}-{self._written}")
        status = "starting"
        while status == "starting":
            answer = await self._line.call("process/write", params, WriteResult, repeats=True)
            status = answer.status
            if status == "starting":
                await anyio.sleep(_STARTING_PAUSE)
        match status:
            case "accepted":
                return
            case "unknownProcess":
                raise ProcessUnknown(process=self._process)
            case _:
                raise StdinClosed(process=self._process)

    def _settle(self, piece: _Piece, failure: Failure | None) -> None:
        self._forget(piece)
        piece.failure = failure
        piece.settled.set()

    def _forget(self, piece: _Piece) -> None:
        self._waiting_bytes -= len(piece.data or b"")
        self._room.set()
        self._room = anyio.Event()
