"""Write to standard output and standard error; detect lost output."""

from __future__ import annotations

import errno
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
    """Write to standard output and flush; raises OSError if it was not all written."""
    _write(text, sys.stdout)


def write_bytes(data: bytes) -> None:
    """Write bytes to standard output and flush; raises OSError if not all were written."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]  # closed before we began
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    sys.stdout.buffer.write(data)
    sys.stdout.flush()


def complain(text: str) -> None:
    """Write to standard error; a closed stream is ignored."""
    try:
        _write(text, sys.stderr)
    except OSError:
        abandon(2)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person sees what is written there; a stream may have been closed before us."""
    return stream is not None and stream.isatty()


def encoded(text: str, stream: TextIO | None) -> bytes:
    """Encode text for a stream; characters that its encoding lacks are escaped."""
    encoding = "utf-8" if stream is None else stream.encoding
    return text.encode(encoding, errors="backslashreplace")


def _write(text: str, stream: TextIO | None) -> None:
    if stream is None:  # it was closed before we began
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    stream.write(encoded(text, stream).decode(stream.encoding))
    stream.flush()


def abandon(descriptor: int) -> None:
    """Redirect a descriptor to /dev/null, so that the interpreter's final flush cannot fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def json_line(record: Mapping[str, object]) -> str:
    """One record as one line of JSON."""
    import json  # not at the top: `--version` and `--help` do not need it

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
