"""Complete what is typed: commands after a slash, names of files after an @."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from heapq import nsmallest
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.nouns import printable
from holdfast.terminal.core.slash import completions

_SHOWN: Final = 50


class Completed(NamedTuple):
    """What the last so many characters can become, and what that means."""

    text: str
    replaces: int
    meaning: str = ""


def completed(typed: str, root: Path) -> Iterator[Completed]:
    """What a line up to the cursor can become; files are those below `root`, and hidden by dots."""
    for slash in completions(typed):
        yield Completed(f"/{slash.name} ", len(typed), slash.meaning)
    word = typed.rsplit(maxsplit=1)[-1] if typed and not typed[-1].isspace() else ""
    if word.startswith("@"):
        yield from islice(_files(word[1:], root), _SHOWN)


def _files(begun: str, root: Path) -> Iterator[Completed]:
    directory, _, name = begun.rpartition("/")
    if directory.startswith(("/", "~")) or ".." in directory.split("/"):
        return
    found: list[tuple[str, bool]] = []
    with suppress(OSError), os.scandir(root / directory) as entries:
        for entry in entries:
            is_hidden = entry.name.startswith(".") and not name.startswith(".")
            if (
                entry.name.startswith(name)
                and not is_hidden
                and printable(entry.name) == entry.name
            ):
                found.append((entry.name, entry.is_dir(follow_symlinks=False)))
    head = f"{directory}/" if directory else ""
    for each, is_directory in nsmallest(_SHOWN, found):
        yield Completed(f"@{head}{each}" + ("/" if is_directory else " "), len(begun) + 1)
