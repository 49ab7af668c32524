"""The answer to a read says the same as any, though its output was never a text of ours."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pybase64
import pytest

from holdfast.exec.protocol import Chunk, ReadResult
from holdfast.exec.server.model import ReadAnswer
from holdfast.exec.server.process import written_chunks
from holdfast.exec.storage.retention_loop import Retention
from tests.exec.planes import closed, keeping_in, retained, shell
from tests.journeys.stage import linux_only

pytestmark = [pytest.mark.anyio, linux_only]

SIZE = 700_000


def chunks(retention: Retention, after: int, bytes_max: int) -> tuple[list[Chunk], int | None]:
    raw, last = written_chunks(retention, after_seq=after, bytes_max=bytes_max)
    return msgspec.json.decode(raw, type=list[Chunk]), last


async def test_chunks_are_those_that_are_kept_as_far_as_there_is_room(tmp_path: Path) -> None:
    script = f"echo one; echo two >&2; head -c {SIZE} /dev/zero"
    async with keeping_in(tmp_path) as keeper:
        retention = await closed(retained(tmp_path, await keeper.start(shell("k", script))))
        found, last = chunks(retention, 0, 2**30)
        said = dict.fromkeys(("stdout", "stderr"), b"")
        for chunk in found:
            said[chunk.stream] += pybase64.b64decode(chunk.chunk, validate=True)

        assert said == {"stdout": b"one\n" + bytes(SIZE), "stderr": b"two\n"}
        exit_seq = retention.exit_seq
        assert [chunk.seq for chunk in found] == [
            seq for seq in range(1, retention.next_seq - 1) if seq != exit_seq
        ]
        assert last == found[-1].seq
        assert chunks(retention, 0, 0) == (found[:1], found[0].seq)
        assert chunks(retention, found[0].seq, 2**30) == (found[1:], last)
        assert chunks(retention, retention.next_seq, 2**30) == ([], None)
        retention.close()


def test_an_answer_is_read_as_any_other_and_what_is_null_comes_first() -> None:
    answer = ReadAnswer(
        failure=None,
        exit_code=None,
        next_seq=3,
        exited=False,
        closed=False,
        sandbox_denied=False,
        lost=msgspec.UNSET,
        first_retained_seq=1,
        has_more=True,
        chunks=msgspec.Raw(b'[{"seq":2,"stream":"stdout","chunk":"YQ=="}]'),
    )
    body = msgspec.json.encode(answer)

    assert msgspec.json.decode(body, type=ReadResult) == ReadResult(
        (Chunk(2, "stdout", "YQ=="),),
        3,
        exited=False,
        exit_code=None,
        closed=False,
        first_retained_seq=1,
        has_more=True,
    )
    assert body.index(b"null") < body.index(b"chunks")
    assert set(msgspec.json.decode(body)) == set(
        msgspec.json.decode(msgspec.json.encode(ReadResult((), 1, False, None, False)))
    ) | {"firstRetainedSeq", "hasMore"}
