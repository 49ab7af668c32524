"""How fast secrets are taken out of text, and what an event costs."""

from __future__ import annotations

import json
import random
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

from holdfast.telemetry import MetricsSink, Redactor, Telemetry
from holdfast.telemetry.model import Level, NotificationsReceived
from holdfast.telemetry.testing import MemorySink, canaries
from holdfast.world import SystemClock

SIZE = 2_000_000
TARGET = 5.0  # MB per CPU second, for every kind of text
TEXT = (
    "connection accepted from client request started completed in ms with status user project "
    "session turn item file path line tokens used for the next answer"
)
WORDS = TEXT.split()


def logs(chance: random.Random) -> str:
    return "\n".join(
        f"2026-11-15T09:08:{n % 60:02d}.{chance.randrange(10**6):06d}Z INFO  holdfast.rpc "
        f"request_id={chance.randrange(16**16):016x} {' '.join(chance.choices(WORDS, k=8))} "
        f"url=https://api.example.org/v1/items/{n}"
        for n in range(SIZE // 150)
    )


def json_lines(chance: random.Random) -> str:
    return "\n".join(
        json.dumps(
            {
                "method": "item/updated",
                "params": {
                    "threadId": f"{chance.randrange(16**32):032x}",
                    "delta": " ".join(chance.choices(WORDS, k=12)),
                    "tokens": chance.randrange(4000),
                    "sha": f"{chance.randrange(16**40):040x}",
                },
            }
        )
        for n in range(SIZE // 230)
    )


def code(chance: random.Random) -> str:
    del chance
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    return "".join(path.read_text(errors="replace") for path in files)[:SIZE]


def with_secrets(chance: random.Random) -> str:
    keys = [text for seed in range(5) for _, text, _ in canaries(seed)]
    lines = logs(chance).splitlines()
    return "\n".join(
        f"{line} {chance.choice(keys)}" if n % 20 == 0 else line for n, line in enumerate(lines)
    )


def speed(text: str, work: Callable[[str], object]) -> float:
    """MB per CPU second, the best of three."""
    best = 0.0
    for _ in range(3):
        began = time.process_time()
        work(text)
        best = max(best, len(text) / (time.process_time() - began) / 1e6)
    return best


def in_chunks(redactor: Redactor) -> Callable[[str], object]:
    def work(text: str) -> str:
        stream = redactor.stream()
        parts = [stream.feed(text[at : at + 65_536]) for at in range(0, len(text), 65_536)]
        return "".join([*parts, stream.flush()])

    return work


def cost(act: Callable[[], object], times: int = 20_000) -> float:
    """Microseconds of CPU for one call."""
    began = time.process_time()
    for _ in range(times):
        act()
    return (time.process_time() - began) / times * 1e6


def main() -> int:
    redactor = Redactor()
    knowing = Redactor([f"known-secret-value-{number:04d}" for number in range(10)])
    slowest = 1e9
    for make in (logs, json_lines, code, with_secrets):
        text = make(random.Random(1))
        whole, known = speed(text, redactor.text), speed(text, knowing.text)
        chunks = speed(text, in_chunks(redactor))
        slowest = min(slowest, whole, known, chunks)
        print(
            f"{make.__name__:14} {whole:6.1f} MB/s   10 known {known:6.1f}   chunks {chunks:6.1f}"
        )
    clock = SystemClock()
    nobody = Telemetry([], clock=clock)
    memory = Telemetry([MemorySink()], clock=clock)
    metrics = Telemetry([MetricsSink(methods=["item/updated"])], clock=clock)
    event = NotificationsReceived(method="item/updated", count=100)
    print(f"wants(), nobody listens     {cost(lambda: nobody.wants(Level.DEBUG)):8.3f} us")
    print(f"emit(), nobody listens      {cost(lambda: nobody.emit(event)):8.3f} us")
    print(f"emit(), into memory         {cost(lambda: memory.emit(event)):8.3f} us")
    print(f"emit(), into metrics        {cost(lambda: metrics.emit(event)):8.3f} us")
    print(f"redact a line of 150 bytes  {cost(lambda: redactor.text(LINE)):8.3f} us")
    print(f"target {TARGET} MB/s: {'met' if slowest >= TARGET else 'MISSED'}")
    return 0 if slowest >= TARGET else 1


LINE = logs(random.Random(2))[:150]

if __name__ == "__main__":
    sys.exit(main())
