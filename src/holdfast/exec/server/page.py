"""Answer a read with the output as it is kept, copied as little as possible."""

from __future__ import annotations

import msgspec
import pybase64

from holdfast.exec.core.index import Kind
from holdfast.exec.retention_loop import Retention
from holdfast.exec.stream_file import piece_memory


def written_chunks(
    retention: Retention, *, after_seq: int, bytes_max: int
) -> tuple[msgspec.Raw, int | None]:
    """The output after a number and the number of its last piece, None if there is no output.

    The first piece is always there, then those that `bytes_max` has room for.
    """
    parts: list[bytes] = []
    last_seq = None
    heads = [b',"stream":"%b","chunk":"' % stream.encode() for stream in retention.streams]
    count, memory = retention.next_seq, piece_memory()
    for run, pieces in retention.runs(after_seq, bytes_max, count_max=count, memory=memory):
        if run.kind is not Kind.OUTPUT:
            continue
        for last_seq, piece in pieces:
            head = b'%b{"seq":%d%b' % (b"," if parts else b"", last_seq, heads[run.stream])
            parts += (head, pybase64.b64encode(piece), b'"}')
    return msgspec.Raw(b"".join((b"[", *parts, b"]"))), last_seq
