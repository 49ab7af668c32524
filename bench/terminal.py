"""What a person waits for at a terminal: the prompt, the echo of a key, and much output.

    python bench/terminal.py [--json]

A real pseudo-terminal, and `holdfast` in it as a person starts it; what is typed is written to the
terminal, what is shown is read from it. The host of the session is warm: somebody sits there
already. Keys are typed while the agent says 200 pieces a second. Processor time is that of the
process that draws.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import resource
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

STARTS, KEYS, LINES = 7, 300, 100_000
LONGEST = 120.0
OURS = (sys.executable, "-P", "-m", "holdfast.cli.main")
WORDS = " ".join(["word"] * 60)
TALKING = f'[[turn]]\nstep = [{", ".join([f"""{{say = "{WORDS}"}}, {{wait = 0.3}}"""] * 200)}]\n'
COUNTING = f'[[turn]]\nstep = [{{run = "seq 1 {LINES}"}}, {{say = "That is all."}}]\n'
COLUMNS = {"what": 44, "measured": 12, "target": 0}


class Terminal:
    """A program in a terminal, and all that it has written."""

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self.master, self.process = master, process
        self.written = b""

    def until(self, seen: Callable[[bytes], bool]) -> None:
        """Read on until something is seen in what is written from now on."""
        begin, deadline = len(self.written), perf_counter() + LONGEST
        while not seen(self.written[begin:]):
            if perf_counter() > deadline or self.process.poll() is not None:
                sys.exit(f"It was never seen:\n{self.written[-2000:].decode(errors='replace')}")
            data = b""
            if select.select([self.master], [], [], 1.0)[0]:
                with suppress(OSError):  # the program has ended
                    data = os.read(self.master, 65536)
                self.written += data
                if b"\x1b[6n" in data:  # where is the cursor?
                    self.type(b"\x1b[1;1R")

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self.master, keys)

    def cpu(self) -> float:
        """Seconds of a processor that who draws has used."""
        parent = self.process.pid
        child = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()[0]
        fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def terminal(home: Path, *words: str) -> Generator[Terminal]:
    """`holdfast` with these words, in a terminal of 80 columns."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    env = {**os.environ, "HOLDFAST_HOME": str(home), "TERM": "xterm-256color"}
    process = subprocess.Popen(
        [*OURS, *words],
        cwd=home / "project",
        env=env,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield Terminal(master, process)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(master)


def is_idle(written: bytes) -> bool:
    """Whether one can type, and somebody is there to hear it."""
    return b"idle" in written


def help_cpu() -> float:
    """Seconds of a processor for the page of help; the median."""
    found = list[float]()
    for _ in range(STARTS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*OURS, "--help"], stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return median(found)


def started(home: Path, *words: str) -> tuple[float, float]:
    """Seconds from the start to the prompt, by the wall and of the processor; medians."""
    walls, cpus = list[float](), list[float]()
    for _ in range(STARTS):
        begun = perf_counter()
        with terminal(home, *words) as each:
            each.until(lambda written: b"> " in written)
            walls.append(perf_counter() - begun)
            own = Path(f"/proc/{each.process.pid}/stat").read_text().rpartition(")")[2].split()
            launcher = (int(own[11]) + int(own[12])) / os.sysconf("SC_CLK_TCK")
            cpus.append(launcher + each.cpu())
    return median(walls), median(cpus)


def echoed(home: Path) -> list[float]:
    """Seconds from each key to its echo, while the agent talks."""
    found = list[float]()
    script = home / "talking.toml"
    script.write_text(TALKING)
    with terminal(home, "--scenario", str(script)) as each:
        each.until(is_idle)
        each.type(b"Talk\r")
        each.until(lambda written: b"word" in written)
        for number in range(KEYS):
            key = b"%d" % (number % 10)
            if number % 20 == 0:
                each.type(b"\x15")
                each.type(b"x")
                each.until(lambda written: b"x" in written)
            begun = perf_counter()
            each.type(key)
            each.until(lambda written, key=key: key in written)
            found.append(perf_counter() - begun)
    return found


def counted(home: Path) -> float:
    """Seconds of a processor for each line of output of a command."""
    script = home / "counting.toml"
    script.write_text(COUNTING)
    with terminal(home, "--scenario", str(script)) as each:
        each.until(is_idle)
        before = each.cpu()
        each.type(b"Count\r")
        each.until(lambda written: b"That is all." in written and is_idle(written))
        return (each.cpu() - before) / LINES


def main() -> None:
    """Measure, and print a table, or rows for a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    is_json = parser.parse_args().json
    rows = measured()
    if is_json:
        print(json.dumps({"title": "The terminal", "rows": rows}))
        return
    for row in [{name: name for name in COLUMNS}, *rows]:
        print("".join(f"{row[name]:<{width}}" for name, width in COLUMNS.items()).rstrip())


def measured() -> list[dict[str, str]]:
    """A row for everything that is measured."""
    with tempfile.TemporaryDirectory(prefix="hf-") as made:
        home = Path(made)
        (home / "project").mkdir()
        try:
            help_page = help_cpu()
            wall, cpu = started(home)
            again, cpu_again = resumed(home)
            keys = quantiles(echoed(home), n=100)
            line = counted(home)
        finally:
            stop = (*OURS, "stop", "--all", "--state", str(home / "state"), "--yes")
            env = {**os.environ, "HOLDFAST_HOME": str(home)}
            subprocess.run(stop, env=env, capture_output=True, check=False)
    return [
        _row("help, CPU", f"{help_page * 1000:.0f} ms", "≤ 60 ms"),
        _row("to the prompt of a new session, wall", f"{wall * 1000:.0f} ms", "≤ 400 ms"),
        _row("the same, CPU", f"{cpu * 1000:.0f} ms"),
        _row("to the prompt of one with a warm host, wall", f"{again * 1000:.0f} ms", "≤ 400 ms"),
        _row("the same, CPU", f"{cpu_again * 1000:.0f} ms"),
        _row("key to echo while it talks, p50", f"{keys[49] * 1000:.1f} ms"),
        _row("key to echo while it talks, p99", f"{keys[98] * 1000:.1f} ms", "≤ 16 ms"),
        _row("output of a command, CPU per line", f"{line * 1e6:.1f} µs"),
    ]


def resumed(home: Path) -> tuple[float, float]:
    """The same as `started`, at a session where somebody sits already."""
    with terminal(home, "--continue") as first:
        first.until(is_idle)
        return started(home, "--continue")


def _row(what: str, figure: str, target: str = "") -> dict[str, str]:
    return {"what": what, "measured": figure, "target": target}


if __name__ == "__main__":
    main()
