"""Write to the two streams that everyone has, to the last byte or with a word about it."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:  # `--version` writes its line without loading settings or styles
    from holdfast.app.settings import Settings
    from holdfast.cli.declarations import Misuse, Request
    from holdfast.cli.render.style import Look

DUMB: Final = (None, "", "dumb")  # values of TERM of terminals without escape sequences


def write(text: str) -> None:
    """Write to standard output and flush; an OSError says that some of it did not arrive."""
    _write(text, sys.stdout)


def write_bytes(data: bytes) -> None:
    """Write to standard output as it is and flush; an OSError says that some did not arrive."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]  # closed before we began
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    sys.stdout.buffer.write(data)
    sys.stdout.flush()


def complain(text: str) -> None:
    """Write to standard error, if anyone is left to read it."""
    try:
        _write(text, sys.stderr)
    except OSError:
        abandon(2)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person sees what is written there; a stream may have been closed before us."""
    return stream is not None and stream.isatty()


def encoded(text: str, stream: TextIO | None) -> bytes:
    """Text as a stream wants it; what its encoding lacks is shown as an escape."""
    encoding = "utf-8" if stream is None else stream.encoding
    return text.encode(encoding, errors="backslashreplace")


def _write(text: str, stream: TextIO | None) -> None:
    if stream is None:  # it was closed before we began
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    stream.write(encoded(text, stream).decode(stream.encoding))
    stream.flush()


def abandon(descriptor: int) -> None:
    """Give a stream up, so that the interpreter does not try it once more when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


# Write records for programs, one on each line.


def json_line(record: Mapping[str, object]) -> str:
    """One record, as one line that any program can read."""
    return json.dumps(record) + "\n"


def look_for(stream: TextIO | None, request: Request | Misuse, settings: Settings | None) -> Look:
    """Colours, symbols and width for a stream, from the request, the settings and the stream."""
    import shutil  # with its compression modules, which `--version` must not load

    from holdfast.cli.render.style import look

    return look(
        wanted=getattr(request, "colour", "auto"),  # a Misuse has none
        is_terminal=is_terminal(stream),
        colourless=settings is None or settings.colourless,
        encoding=getattr(stream, "encoding", "ascii"),
        columns=shutil.get_terminal_size().columns,
    )
