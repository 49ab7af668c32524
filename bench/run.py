"""Run every benchmark and write what it measured to a page of the documentation.

A benchmark is a script in this directory that prints a table and, with `--json`, a list of rows
instead (or an object with `rows` and a `title`). A row is a flat object; its keys are columns.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).parent
HEAD = """\
# Benchmarks

Written by `make bench`; do not edit. Measured on {cores} cores ({processor}), {memory:.0f} GiB,
{system}, Python {python}, {date}. Another machine gives other numbers; ratios travel better.
"""


def main() -> None:
    """Run them all, one after the other; a benchmark that breaks is named and fails the run."""
    page, broken = [_head()], []
    for script in sorted(HERE.glob("*.py")):
        if script.name == Path(__file__).name or "--json" not in script.read_text():
            continue
        print(f"Measuring {script.stem} ...", file=sys.stderr)
        done = subprocess.run(
            [sys.executable, str(script), "--json"],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            cwd=HERE.parent,
        )
        if done.returncode:
            broken.append(script.stem)
        else:
            page.append(_section(script.stem, done.stdout))
    if broken:
        sys.exit(f"These benchmarks broke, nothing was written: {', '.join(broken)}")
    Path(sys.argv[1]).write_text("\n".join(page), encoding="utf-8")


def _head() -> str:
    return HEAD.format(
        cores=os.cpu_count(),
        processor=_processor(),
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30,
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        date=datetime.now(UTC).date().isoformat(),
    )


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def _section(name: str, output: str) -> str:
    measured = json.loads(output)
    title = measured.get("title", name) if isinstance(measured, dict) else name
    rows = measured["rows"] if isinstance(measured, dict) else measured
    columns = list(dict.fromkeys(column for row in rows for column in row))
    lines = [_row(columns), _row("---" for _ in columns)]
    lines += [_row(_cell(row.get(column, "")) for column in columns) for row in rows]
    return f"## {title}\n\n" + "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
