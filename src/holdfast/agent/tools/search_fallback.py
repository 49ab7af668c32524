"""Search without ripgrep, as a process with ripgrep's JSON output.

A separate process, because a regular expression may backtrack forever and must be killable.
"""

from __future__ import annotations

import json
import os
import re
import sys
from base64 import b64encode
from collections.abc import Iterator
from typing import Final

from holdfast.agent.tools.search_results import IgnoreRule, compiled, hits_in, is_ignored, rules_in

FILE_BYTES_MAX: Final = 10 * 2**20
_RULES: Final = ".gitignore"
_NEVER: Final = frozenset((".git",))

Level = tuple[str, tuple[IgnoreRule, ...]]
"""A directory (as path prefix) and its ignore rules."""


def files_below(top: str, *, ignores: bool) -> Iterator[str]:
    """Yield the files below a path in order, without following symlinks or ignored paths."""
    if os.path.isfile(top) and not os.path.islink(top):
        yield top
    elif os.path.isdir(top):
        yield from _walked("" if top == "." else f"{top}/", _above(top) if ignores else None)


def _above(top: str) -> tuple[Level, ...]:
    """Return the ignore rules of the parents of the directory to search."""
    parts = [] if top == "." else top.split("/")
    prefixes = ["".join(f"{part}/" for part in parts[:count]) for count in range(len(parts))]
    return tuple((prefix, _rules(prefix)) for prefix in prefixes)


def _walked(prefix: str, levels: tuple[Level, ...] | None) -> Iterator[str]:
    levels = None if levels is None else (*levels, (prefix, _rules(prefix)))
    try:
        with os.scandir(prefix or ".") as found:
            entries = sorted(found, key=lambda entry: os.fsencode(entry.name))
    except OSError:
        return
    for entry in entries:
        path = prefix + entry.name
        is_directory = entry.is_dir(follow_symlinks=False)
        if entry.name in _NEVER or (levels and _is_ignored(levels, path, is_directory)):
            continue
        if is_directory:
            yield from _walked(f"{path}/", levels)
        elif entry.is_file(follow_symlinks=False):
            yield path


def _is_ignored(levels: tuple[Level, ...], path: str, is_directory: bool) -> bool:
    """Whether a path is ignored; the nearest directory with a matching rule decides."""
    for prefix, rules in reversed(levels):
        said = is_ignored(rules, path.removeprefix(prefix), is_directory=is_directory)
        if said is not None:
            return said
    return False


def _rules(prefix: str) -> tuple[IgnoreRule, ...]:
    try:
        with open(f"{prefix}{_RULES}", encoding="utf-8", errors="surrogateescape") as file:
            return rules_in(file.read(FILE_BYTES_MAX))
    except OSError:
        return ()


def _data(text: str) -> dict[str, str]:
    raw = os.fsencode(text)
    try:
        return {"text": raw.decode()}
    except UnicodeDecodeError:
        return {"bytes": b64encode(raw).decode()}


def _search(path: str, pattern: re.Pattern[str], around: int) -> Iterator[dict[str, object]]:
    """Yield the matches of a file as ripgrep messages."""
    try:
        if os.path.getsize(path) > FILE_BYTES_MAX:
            return
        with open(path, "rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError:
        return
    if b"\0" in data:
        return
    name = {"path": _data(path)}
    hits = list(hits_in(data, pattern, around=around))
    if hits:
        yield {"type": "begin", "data": name}
        for hit in hits:
            body = {**name, "lines": _data(hit.text), "line_number": hit.number}
            yield {"type": "match" if hit.is_match else "context", "data": body}
        yield {"type": "end", "data": {**name, "binary_offset": None}}


def main(order: dict[str, object]) -> int:
    """Run a search, one result a line; returns 2 for an invalid pattern."""
    files = files_below(str(order["path"]), ignores=bool(order["ignores"]))
    write = sys.stdout.buffer.write
    if order["pattern"] is None:
        for path in files:
            write(os.fsencode(path) + b"\0")
        return 0
    try:
        pattern = compiled(
            str(order["pattern"]),
            is_literal=bool(order["is_literal"]),
            ignores_case=bool(order["ignores_case"]),
        )
    except re.error as error:
        sys.stderr.write(f"regex parse error: {error}\n")
        return 2
    for path in files:
        for message in _search(path, pattern, int(str(order["around"]))):
            write(json.dumps(message).encode() + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
