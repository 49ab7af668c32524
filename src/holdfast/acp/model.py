"""What an editor and its sessions are described by."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple


class Opened(NamedTuple):
    """A session that an editor can have; its agent sees the project at `root`, if elsewhere."""

    id: str
    project: str
    title: str
    at: str
    root: str = ""
    draft: str = ""
    models: tuple[str, ...] = ()  # that its agent can be told to ask, the current one first
    takes_servers: bool = True  # whether its agent can use MCP servers of an editor


class EditorServer(NamedTuple):
    """An MCP server that an editor gave: a command, or an address."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    url: str = ""
    headers: Mapping[str, str] = {}


def server_content(server: EditorServer) -> bytes:
    """All of a server, to the byte: what its user agrees to."""
    return json.dumps(server._asdict(), sort_keys=True, default=dict).encode()


class EditorState(NamedTuple):
    """What was chosen in an editor for a session; it is kept with the session."""

    mode: str = ""
    model: str = ""
    effort: str = ""


class Mode(NamedTuple):
    """How an editor has turns taken from now on."""

    id: str
    name: str
    meaning: str
    is_in_place: bool = False
    asks: bool = True


MODES: Final = (
    Mode("ask", "Draft", "Changes stay in a draft until you publish; what needs leave is asked."),
    Mode(
        "in-place",
        "In place",
        "The project has what a turn did when it has completed, after a checkpoint.",
        is_in_place=True,
    ),
    Mode(
        "alone",
        "Alone",
        "Changes stay in a draft, and permission requests are refused without asking.",
        asks=False,
    ),
)
"""The ways there are, the first unless another is chosen."""
