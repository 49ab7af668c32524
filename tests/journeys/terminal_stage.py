"""A person who has typed `holdfast`, and the processes behind what they see."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.conversations import scripted
from tests.cli.planes import started_for
from tests.cli.running import COMMAND, environment
from tests.cli.workbenches import Bench
from tests.parts.pty_screen import PtyScreen, on_screen

READY = "idle · rehearsal"


@contextmanager
def at(
    bench: Bench, steps: str, *words: str, size: tuple[int, int] = (80, 24)
) -> Generator[PtyScreen]:
    """A person who begins a session with an agent that does only this, and then only answers."""
    script = scripted(bench, steps, *(f'{{say = "Answer {number}."}}' for number in range(2, 9)))
    with typed(bench, "--scenario", script, *words, size=size) as screen:
        screen.shows("idle")
        yield screen


@contextmanager
def typed(
    bench: Bench, *words: str, size: tuple[int, int] = (80, 24), **more: str
) -> Generator[PtyScreen]:
    """A person who has typed `holdfast` and these words."""
    env = environment(bench.home, **more)
    with on_screen([*COMMAND, *words], cwd=bench.project, env=env, size=size) as screen:
        yield screen


def terminal_of(screen: PtyScreen) -> int:
    """The process that draws a screen; its parent only waits for it."""
    parent = screen.process.pid
    return int(Path(f"/proc/{parent}/task/{parent}/children").read_text().split()[0])


def servers_of(bench: Bench) -> list[int]:
    """The exec-server of a bench."""
    return started_for(bench.home, word="exec-server")


def cpu_seconds(process: int) -> float:
    """What a process has used of a processor so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100
