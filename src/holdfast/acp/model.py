"""Data types of the ACP server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple


class Opened(NamedTuple):
    """A session as an editor sees it; `root` is set if the agent works in another directory."""

    id: str
    project: str
    title: str
    at: str
    root: str = ""
    draft: str = ""
    models: tuple[str, ...] = ()  # that its agent can be told to ask, the current one first
    takes_servers: bool = True  # whether its agent can use MCP servers of an editor


class EditorServer(NamedTuple):
    """An MCP server from an editor: a command or a URL."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    url: str = ""
    headers: Mapping[str, str] = {}


def server_content(server: EditorServer) -> bytes:
    """The exact configuration of a server, which the user's trust is bound to."""
    return json.dumps(server._asdict(), sort_keys=True, default=dict).encode()


class EditorState(NamedTuple):
    """Options that an editor has set for a session; stored with the session."""

    mode: str = ""
    model: str = ""
    effort: str = ""


class Mode(NamedTuple):
    """A session mode of the protocol."""

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
"""All session modes; the first is the default."""
