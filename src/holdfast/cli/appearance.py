"""How to write for whoever reads a stream."""

from __future__ import annotations

import shutil
from typing import TextIO

from holdfast.app.settings import Settings
from holdfast.cli.declarations import Misuse, Request
from holdfast.cli.output import is_terminal
from holdfast.cli.render.style import Look, look


def look_for(stream: TextIO | None, request: Request | Misuse, settings: Settings | None) -> Look:
    """The look that the request, the settings and the stream itself ask for."""
    return look(
        wanted="auto" if isinstance(request, Misuse) else request.colour,
        is_terminal=is_terminal(stream),
        colourless=settings is None or settings.colourless,
        encoding=getattr(stream, "encoding", "ascii"),
        columns=shutil.get_terminal_size().columns,
    )
