"""A kept process tells its end once, asks its keeper, and closes what nobody took."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

import pytest

from holdfast.exec.keeper.client_loop import KeptProcess
from holdfast.exec.keeper.protocol import Message
from holdfast.exec.protocol import OutputStream

pytestmark = pytest.mark.anyio


class Asked:
    """A keeper that does everything, and keeps what it was asked."""

    def __init__(self) -> None:
        self.questions: list[Message] = []
        self.beside: list[int] = []

    async def __call__(self, question: Message, beside: Sequence[int] = (), /) -> Message:
        self.questions.append(question)
        self.beside += beside
        return {"is_sent": True, "is_held": True}


def kept(ask: Asked, *names: str, status: int | None = None) -> tuple[KeptProcess, list[int]]:
    descriptors = [os.open(os.devnull, os.O_RDWR) for _ in names]
    held: Message = {"key": "k", "pid": 7, "status": status, "holds": list(names)}
    return KeptProcess(ask, held, descriptors), descriptors


def is_open(descriptor: int) -> bool:
    return os.path.exists(f"/dev/fd/{descriptor}")


async def test_what_it_wants_is_asked_of_the_keeper() -> None:
    ask = Asked()
    it, (stdin, _, _) = kept(ask, "stdin", "stdout", "stderr")

    assert await it.signal(signal.SIGTERM, group=False)
    await it.close_stdin()
    await it.forget()
    assert ask.questions == [
        {"ask": "signal", "key": "k", "signal": 15, "group": False},
        {"ask": "close_stdin", "key": "k"},
        {"ask": "forget", "key": "k"},
    ]
    assert not is_open(stdin)


async def test_the_position_of_a_ring_is_held_by_the_keeper_and_taken_from_it() -> None:
    ask = Asked()
    it, (_, _, held) = kept(ask, "stdout", "stderr", "ring stderr")

    assert await it.hold_position(OutputStream.STDOUT, 5)
    assert ask.questions == [{"ask": "hold", "key": "k", "name": "ring stdout"}]
    assert ask.beside == [5]
    assert (it.take_positions(), it.take_positions()) == ({OutputStream.STDERR: held}, {})
    os.close(held)
    it.release()


async def test_a_descriptor_belongs_to_whoever_takes_it() -> None:
    it, (out, err) = kept(Asked(), "stdout", "stderr")
    copied, taken = it.copy("stdout"), it.take("stdout")
    it.release()

    assert copied is not None and copied != out
    assert (taken, it.take("stdout"), it.copy("stdin")) == (out, None, None)
    assert [is_open(each) for each in (copied, out, err)] == [True, True, False]
    os.close(copied)
    os.close(out)


@pytest.mark.parametrize(
    ("names", "streams"),
    [
        (("pty", "pipe_out", "pipe_in"), (OutputStream.PTY,)),
        (("stdout", "stderr"), (OutputStream.STDOUT, OutputStream.STDERR)),
    ],
)
async def test_where_output_comes_from(
    names: tuple[str, ...], streams: tuple[OutputStream, ...]
) -> None:
    it, _ = kept(Asked(), *names)
    it.release()

    assert it.streams == streams


@pytest.mark.parametrize("known", [None, 3], ids=["it comes", "it is known"])
async def test_its_end_is_told_once(known: int | None) -> None:
    told: list[int] = []
    it, _ = kept(Asked(), status=known)
    it.on_exit(told.append)
    it.exited(3)
    it.exited(137)

    assert (told, it.exit_status) == ([3], 3)
