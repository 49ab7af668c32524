"""How fast secrets are taken out of text, and what an event costs."""

from __future__ import annotations

import argparse
import json
import random
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

from holdfast.telemetry import MetricsSink, Redactor, Telemetry
from holdfast.telemetry.model import NotificationsReceived
from holdfast.telemetry.testing import canaries
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


def rows() -> list[dict[str, str]]:
    """How fast each kind of text is cleaned, and what telemetry costs a caller."""
    redactor = Redactor()
    knowing = Redactor([f"known-secret-value-{number:04d}" for number in range(10)])
    table: list[dict[str, str]] = []
    for make in (logs, json_lines, code, with_secrets):
        text = make(random.Random(1))
        row = {"what": make.__name__.replace("_", " ")}
        for name, work in (
            ("whole", redactor.text),
            ("with 10 known secrets", knowing.text),
            ("in chunks of 64 KiB", in_chunks(redactor)),
        ):
            row[name] = f"{speed(text, work):.1f} MB/s"
        table.append({**row, "target": f">= {TARGET} MB/s"})
    clock = SystemClock()
    nobody = Telemetry([], clock=clock)
    metrics = Telemetry([MetricsSink(methods=["item/updated"])], clock=clock)
    event = NotificationsReceived(method="item/updated", count=100)
    for what, act in (
        ("emit an event, nobody listens", lambda: nobody.emit(event)),
        ("emit an event into metrics", lambda: metrics.emit(event)),
        ("redact a line of 150 bytes", lambda: redactor.text(LINE)),
    ):
        table.append({"what": what, "whole": f"{cost(act):.2f} µs"})
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what taking secrets out costs.")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    table = rows()
    if args.json:
        print(json.dumps({"title": "Redaction (per CPU second of one core)", "rows": table}))
        return
    for row in table:
        print("  ".join(f"{name}: {cell}" for name, cell in row.items()))


LINE = logs(random.Random(2))[:150]

if __name__ == "__main__":
    main()
