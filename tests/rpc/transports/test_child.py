"""A real child process, with everything that one can do to the other side of a pipe."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from holdfast.failures import Failure
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost
from holdfast.rpc.framing import MESSAGE_BYTES_MAX, TAIL_BYTES
from holdfast.rpc.testing import end_of, fill, take
from holdfast.rpc.transports.child import ChildTransport, spawn
from holdfast.rpc.transports.launch import ChildCommand
from holdfast.rpc.transports.stream_loop import READ_BYTES, UNREAD_BYTES_MAX, VERDICT_WAIT
from tests.parts.family import our_children

pytestmark = pytest.mark.anyio

SAYS_ITS_PID = "import os; os.write(1, b'{\"pid\":%d}\\n' % os.getpid());"
LISTENS = "import sys; [None for line in sys.stdin.buffer];"


def python(script: str, *, env: dict[str, str] | None = None) -> ChildCommand:
    return ChildCommand(argv=(sys.executable, "-I", "-S", "-c", script), cwd="/", env=env or {})


@asynccontextmanager
async def child(
    script: str, *, grace: float = 5.0, message_bytes_max: int = MESSAGE_BYTES_MAX
) -> AsyncGenerator[ChildTransport]:
    """A running child that is gone at the end, with a limit on how long all of it may take."""
    with anyio.fail_after(60):
        transport = await spawn(python(script), grace=grace, message_bytes_max=message_bytes_max)
        try:
            yield transport
        finally:
            await transport.aclose()
            assert not is_alive(transport.pid)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that is dead but not yet reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


async def until(claim: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not claim():  # noqa: ASYNC110  # the kernel sets no event of ours
            await anyio.sleep(0.005)


async def pid_said_by(transport: ChildTransport) -> int:
    [message] = await take(transport, 1)
    return int(message.split(b":")[1].rstrip(b"}"))


@pytest.mark.promise("F16", "F17")
@pytest.mark.parametrize(
    ("script", "failure"),
    [
        ("pass", ConnectionClosed(reason="exit status 0")),
        (
            "import sys; sys.stderr.write('gone\\n'); sys.exit(3)",
            ConnectionLost(reason="exit status 3", status=3, stderr="gone\n"),
        ),
        (
            'import os; os.write(1, b\'{"id":\'); os.write(2, b"why\\n"); os.kill(os.getpid(), 9)',
            ConnectionLost(reason="killed by SIGKILL", status=-9, stderr="why\n", partial='{"id":'),
        ),
        (
            "import os; os.write(1, b'{\"id\":'); os._exit(0)",
            ConnectionClosed(reason="exit status 0", partial='{"id":'),
        ),
        (
            "import os, signal; os.close(1); signal.pause()",
            ConnectionLost(reason="it closed its output and lives on"),
        ),
    ],
    ids=["status 0", "status 3", "killed", "part", "closed its output"],
)
async def test_the_end_of_a_child_says_how_it_ended(script: str, failure: Failure) -> None:
    async with child(script, grace=0.2) as transport:
        assert await end_of(transport) == failure
        await transport.aclose()
        assert await end_of(transport) == failure


@pytest.mark.promise("F16")
async def test_a_last_message_without_its_line_end_is_received() -> None:
    async with child('import os; os.write(1, b\'{"id":1}\\n{"id":2}\')') as transport:
        assert await take(transport, 2) == [b'{"id":1}', b'{"id":2}']
        assert await end_of(transport) == ConnectionClosed(reason="exit status 0")


@pytest.mark.promise("F17")
async def test_a_flood_of_complaints_neither_blocks_the_child_nor_costs_memory() -> None:
    flood = """
import os
for _ in range(50 * 16):
    os.write(2, (b"x" * 63 + b"\\n") * 1024)
os.write(2, b"the last words\\n")
os.write(1, b"{}\\n")
os._exit(7)
"""
    async with child(flood) as transport:
        assert await take(transport, 1) == [b"{}"]
        failure = await end_of(transport)
        assert isinstance(failure, ConnectionLost)
        assert failure.stderr.endswith("x\nthe last words\n")
        assert len(failure.stderr) <= TAIL_BYTES


async def test_a_child_that_dies_while_we_send_is_explained_by_its_status() -> None:
    async with child("import os; os.read(0, 1); os._exit(5)") as transport:
        failure: Failure | None = None
        while failure is None:
            try:
                await transport.send([b"x" * 1000])
            except Failure as end:
                failure = end
        assert failure == ConnectionLost(reason="exit status 5", status=5)


async def test_a_child_that_closes_its_input_and_lives_on_is_lost() -> None:
    async with child(
        "import os, signal; os.close(0); os.write(1, b'{}\\n'); signal.pause()", grace=0.2
    ) as it:
        assert await take(it, 1) == [b"{}"]
        with pytest.raises(ConnectionLost) as raised:
            await it.send([b"{}"])
        assert raised.value == ConnectionLost(reason="Broken pipe")


async def test_all_that_a_child_said_is_received_however_late() -> None:
    # One write more than we hold unread at the most, which is no more than the pipe holds.
    line, writes = b"x" * 63, (UNREAD_BYTES_MAX + READ_BYTES) // 4096 + 1
    says_much = f"""
import os
for _ in range({writes}):
    os.write(1, ({line!r} + b"\\n") * 64)
os.kill(os.getpid(), 9)
"""
    async with child(says_much) as transport:
        await until(lambda: not is_alive(transport.pid))
        await anyio.sleep(2 * VERDICT_WAIT)
        assert await take(transport, 64 * writes) == [line] * 64 * writes
        assert await end_of(transport) == ConnectionLost(reason="killed by SIGKILL", status=-9)


LONG_LINE = """
import os
line = b'{"x":"' + b"x" * (2**20 - 6)
for n in range(%d):
    view = memoryview(line if n == 0 else b"x" * 2**20)
    while view:
        view = view[os.write(1, view):]
os.write(1, b'"}\\n{}\\n')
"""


@pytest.mark.promise("F18")
async def test_a_line_of_100_mib_is_received_if_that_is_allowed() -> None:
    async with child(LONG_LINE % 100, message_bytes_max=101 * 2**20) as transport:
        long, short = await take(transport, 2)
        assert (len(long), long[:8], long[-4:], short) == (
            100 * 2**20 + 2,
            b'{"x":"xx',
            b'xx"}',
            b"{}",
        )


MEASURES_OVER_LIMIT = """
import anyio, resource, sys
from holdfast.rpc.transports.child import spawn
from holdfast.rpc.failures import MessageTooLarge
from holdfast.rpc.transports.launch import Command

async def main():
    transport = await spawn(Command(argv=(sys.executable, "-c", sys.argv[1]), cwd="/", env={}))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        await transport.receive()
    except MessageTooLarge as failure:
        assert failure == MessageTooLarge(bytes_max=100 * 2**20)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    await transport.aclose()

anyio.run(main)
"""


@pytest.mark.promise("F18")
async def test_a_line_over_the_limit_ends_the_connection_in_bounded_memory() -> None:
    limit_kib = MESSAGE_BYTES_MAX // 2**10

    command = [sys.executable, "-c", MEASURES_OVER_LIMIT, LONG_LINE % 300]
    done = await anyio.run_process(command, env={"PYTHONPATH": os.pathsep.join(sys.path)})

    assert int(done.stdout) < 1.25 * limit_kib


async def test_a_slow_reader_blocks_the_child_in_bounded_memory() -> None:
    says_without_end = "import os\nwhile True: os.write(1, b'{}\\n' * 1000)"
    async with child(says_without_end, grace=0.1) as transport:
        assert set(await transport.receive()) == {b"{}"}
        before, written = -1, written_by(transport.pid)
        while before < written:
            await anyio.sleep(0.1)
            before, written = written, written_by(transport.pid)
        assert written < 4 * 2**20
        assert set(await transport.receive()) == {b"{}"}


def written_by(pid: int) -> int:
    return int(Path(f"/proc/{pid}/io").read_text().split()[3])


async def test_a_child_that_never_reads_does_not_hold_up_the_end() -> None:
    async with child("import signal; signal.pause()", grace=0.1) as transport:
        sent = await fill(transport)
        assert sent


IGNORES_EVERYTHING = """
import os, signal
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
os.write(1, b"{}\\n")
while True:
    signal.pause()
"""


async def test_a_child_that_ignores_every_request_to_end_is_killed() -> None:
    async with child(IGNORES_EVERYTHING, grace=0.1) as transport:
        await take(transport, 1)


ASKED_KINDLY = """
import os, signal, sys
def end(*_):
    os.write(2, b"asked by SIGTERM\\n")
    os._exit(0)
signal.signal(signal.SIGTERM, end)
os.write(1, b"{}\\n")
sys.stdin.buffer.read()
os.write(2, b"end of input\\n")
while True:
    signal.pause()
"""


async def test_a_child_is_asked_by_the_end_of_its_input_and_then_by_a_signal() -> None:
    async with child(ASKED_KINDLY, grace=0.5) as transport:
        await take(transport, 1)
        await transport.aclose()
        assert transport.stderr == "end of input\nasked by SIGTERM\n"


async def test_what_was_sent_before_the_end_is_still_read_by_the_child() -> None:
    counts = "import sys; sys.stderr.write(str(len(sys.stdin.buffer.read())))"
    async with child(counts) as transport:
        for _ in range(100):
            await transport.send([b"x" * 9999])
        await transport.aclose()
        assert transport.stderr == str(100 * 10_000)


async def test_closing_is_prompt_when_the_child_is() -> None:
    times: list[float] = []
    for _ in range(3):  # the best of three: another process may have the processor
        async with child(LISTENS, grace=30.0) as transport:
            await transport.send([b"{}"])
            began = anyio.current_time()
            await transport.aclose()
            times.append(anyio.current_time() - began)

    assert min(times) < 2.0


async def test_killing_does_not_wait_for_a_child_that_ignores_everything() -> None:
    times: list[float] = []
    for _ in range(3):
        async with child(IGNORES_EVERYTHING, grace=30.0) as transport:
            await take(transport, 1)
            began = anyio.current_time()
            await transport.kill()
            times.append(anyio.current_time() - began)
            assert not is_alive(transport.pid)

    assert min(times) < 2.0


# A wrapper that starts the program proper and waits for it, like the launchers of npm.
WRAPPER = """
import os, subprocess, sys
os.write(1, b'{"pid":%%d}\\n' %% subprocess.Popen([sys.executable, "-S", "-c", %r]).pid)
os.wait()
"""
NATIVE = "import sys; [None for line in sys.stdin.buffer]; import signal; signal.pause()"


async def test_a_wrapper_that_is_killed_is_noticed_although_its_child_holds_the_pipes() -> None:
    async with child(WRAPPER % NATIVE, grace=0.2) as transport:
        native = await pid_said_by(transport)
        os.kill(transport.pid, signal.SIGKILL)
        with anyio.fail_after(60):
            assert await end_of(transport) == ConnectionLost(reason="killed by SIGKILL", status=-9)
        assert is_alive(native)
        await transport.aclose()
        assert not is_alive(native)


# Forks twice, each time into a session of its own, and loses the one in between.
DAEMON = """
import os, signal
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        os.write(1, b'{"pid":%d}\\n' % os.getpid())
        for fd in range(3): os.close(fd)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True: signal.pause()
    os._exit(0)
os.wait()
"""


@pytest.mark.parametrize("end", ["import sys; sys.stdin.read()", "signal.pause()", ""])
async def test_daemons_in_sessions_of_their_own_are_gone_after_the_end(end: str) -> None:
    async with child(DAEMON + end, grace=0.2) as transport:
        daemon = await pid_said_by(transport)
        assert is_alive(daemon)
        await transport.aclose()
        assert not is_alive(daemon)


async def test_a_child_dies_with_us() -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("needs setpriv (util-linux) for the parent-death signal")
    starts_and_waits = f"""
import anyio, os, sys
from holdfast.rpc.transports.child import spawn
from holdfast.rpc.transports.launch import Command

async def main():
    argv = (sys.executable, "-c", {SAYS_ITS_PID + "import signal; signal.pause()"!r})
    transport = await spawn(Command(argv=argv, cwd="/", env={{}}))
    os.write(1, (await transport.receive())[0])
    await anyio.sleep_forever()

anyio.run(main)
"""
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", starts_and_waits]
    async with await anyio.open_process(command, env=environment, stderr=None) as parent:
        assert parent.stdout is not None
        said = await parent.stdout.receive()
        pid = int(said.split(b":")[1].rstrip(b"}\n"))
        assert is_alive(pid)
        parent.kill()
        await until(lambda: not is_alive(pid))


async def test_a_hundred_children_leave_no_descriptor_and_no_zombie() -> None:
    def held() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), len(anyio.get_running_tasks())

    before, children = held(), our_children()
    for number in range(100):
        async with child("import os; os.write(1, b'{}\\n'); os.read(0, 1)") as transport:
            if number % 2:
                await take(transport, 1)

    assert held() == before
    assert our_children() <= children


async def test_a_program_that_ignores_its_children_is_told_of_their_end() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        async with child(LISTENS) as transport:
            os.kill(transport.pid, signal.SIGKILL)
            failure = await end_of(transport)
    finally:
        signal.signal(signal.SIGCHLD, before)

    assert failure == ConnectionLost(reason="exit status 255", status=255)
