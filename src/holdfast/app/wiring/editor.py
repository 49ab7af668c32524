"""What an editor chose for a session, and the MCP servers that it gave for it.

The choice lies beside the journal of the session. The servers lie in the runtime directory, which
is private and does not outlast the login: their variables and headers may hold secrets.
"""

from __future__ import annotations

import json
from pathlib import Path

from holdfast.acp.model import EditorServer, EditorState
from holdfast.app.sessions import KeptSession, Sessions
from holdfast.app.settings import Settings
from holdfast.world import SystemDisk, make_private, replace_file


def servers_file(settings: Settings, session: str) -> Path:
    """Where the servers of a session are."""
    return settings.runtime / "editor" / f"{session}.json"


def write_servers(settings: Settings, session: str, servers: tuple[EditorServer, ...]) -> None:
    """Replace the servers of a session by those that its user agreed to."""
    file = servers_file(settings, session)
    if not servers:
        file.unlink(missing_ok=True)
        return
    entries = {each.name: _entry(each) for each in servers}
    make_private(file.parent)
    replace_file(SystemDisk(), file, [json.dumps({"mcpServers": entries}).encode()])


def read_state(settings: Settings, session: KeptSession) -> EditorState:
    """What was chosen for a session; a file that cannot be read counts as no choice."""
    try:
        read = json.loads(_state_file(settings, session).read_bytes())
        found = {name: read[name] for name in EditorState._fields if isinstance(read[name], str)}
    except (OSError, ValueError, KeyError, TypeError):
        return EditorState()
    return EditorState(**found)


def write_state(settings: Settings, session: KeptSession, state: EditorState) -> None:
    """Keep what was chosen for a session, durably."""
    replace_file(
        SystemDisk(), _state_file(settings, session), [json.dumps(state._asdict()).encode()]
    )


def _state_file(settings: Settings, session: KeptSession) -> Path:
    return Sessions(settings).directory(session) / "editor.json"


def _entry(server: EditorServer) -> dict[str, object]:
    if server.url:
        return {"url": server.url, "headers": dict(server.headers)}
    return {"command": server.command, "args": server.args, "env": dict(server.env)}
