"""What goes wrong while a session is in some state, each as one deed."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Awaitable, Callable

import anyio
import pytest

from holdfast.cli.render.stop import Sort
from holdfast.failures import Failure
from holdfast.host.model import PromptCommand
from holdfast.host.supervision import Responsive
from holdfast.world import system_process
from tests.exec.server.talking import until
from tests.faults.host_casts import LONG
from tests.faults.host_stand import Stand, end_all

CUT, STOPPED = 20.0, 35.0  # seconds


async def kill_host(here: Stand) -> None:
    os.kill(here.pid_of_host(), signal.SIGKILL)


async def kill_server(here: Stand) -> None:
    os.kill(here.pid_of(Sort.SERVER), signal.SIGKILL)


async def kill_runner(here: Stand) -> None:
    os.kill(here.pid_of_runner(), signal.SIGKILL)


async def kill_keeper(here: Stand) -> None:
    """Whatever it held ends with it, the host too, a moment later."""
    host = here.pid_of_host()
    os.kill(here.pid_of(Sort.KEEPER), signal.SIGKILL)
    await until(lambda: is_gone(host), within=30)


def is_gone(pid: int) -> bool:
    process = system_process(pid)
    return process is None or process.is_dead


async def cut_network(here: Stand) -> None:
    """Nothing is carried between the person, the host, the plane and the model."""
    for cable in here.cables:
        cable.unplug()
    await _watch(here, CUT)
    for cable in here.cables:
        cable.plug_in()


async def stop_host(here: Stand) -> None:
    host = here.pid_of_host()
    os.kill(host, signal.SIGSTOP)
    await _watch(here, STOPPED)
    os.kill(host, signal.SIGCONT)
    await here.until(lambda: Responsive() in here.seen)


async def fill_disk(here: Stand) -> None:
    """Until that was said; who wants something to be written down meanwhile is refused."""
    assert here.disk is not None
    here.disk.fill()
    await here.until(lambda: "DISK_FULL" in here.said)
    with pytest.raises(Failure) as refused:
        await here.seat.command(PromptCommand("refused", LONG))
    assert refused.value.code == "DISK_FULL"
    here.disk.make_room()


async def lose_power(here: Stand) -> None:
    """Nobody runs any more, and the disk has what was written to it; then there is power again."""
    assert here.disk is not None
    await here.leave()
    here.disk.lose_power()
    end_all(here.home)
    await anyio.to_thread.run_sync(here.disk.start_again)
    await here.sit()


async def _watch(here: Stand, seconds: float) -> None:
    with anyio.move_on_after(seconds):
        await here.until(lambda: False)


Harm = Callable[[Stand], Awaitable[None]]
HARMS: dict[str, Harm] = {
    "host": kill_host,
    "exec-server": kill_server,
    "agent": kill_runner,
    "keeper": kill_keeper,
    "network cut for 20 s": cut_network,
    "host stopped for 35 s": stop_host,
    "disk full": fill_disk,
    "power": lose_power,
}


def kill_client(client: subprocess.Popen[bytes]) -> None:
    """Whoever leads the session, or publishes, is gone from one moment to the next."""
    client.kill()
    client.wait()
