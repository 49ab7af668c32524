"""Session configuration from an editor: mode, model, effort and MCP servers.

Modes and config options are kept with the session, so that `session/load` finds them. The servers
of an editor are used once its user has agreed to exactly their content.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

import acp
from acp import schema

from holdfast.acp.model import MODES, EditorServer, EditorState, Mode, Opened
from holdfast.runners.model import EFFORTS

DEFAULT: Final = "default"  # an effort that the provider decides
SERVER_AGREED: Final = "connect"
SERVER_OPTIONS: Final = [
    schema.PermissionOption(option_id=SERVER_AGREED, name="Connect", kind="allow_always"),
    schema.PermissionOption(option_id="refuse", name="Do not connect", kind="reject_once"),
]
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_-]")
_NAME_MAX: Final = 32

ConfigOptions = list[schema.SessionConfigOptionSelect | schema.SessionConfigOptionBoolean]

COMMANDS: Final = (
    ("diff", "Show what the agent has changed in the draft", ("draft", "diff")),
    ("undo", "Take the last step in the draft back", ("draft", "undo")),
    ("status", "Show the project and its drafts", ("status",)),
    ("checkpoints", "List what can be restored", ("checkpoint", "list")),
    ("compact", "Summarise the older part of the conversation", ()),
)
"""Slash commands in an editor: name, description, and the holdfast arguments to run."""
_IN_DRAFT: Final = ("diff", "undo")


def mode_of(state: EditorState) -> Mode:
    """The chosen mode, or the default."""
    return next((mode for mode in MODES if mode.id == state.mode), MODES[0])


def mode_state(state: EditorState) -> schema.SessionModeState:
    """All modes, for clients without config options."""
    modes = [schema.SessionMode(id=e.id, name=e.name, description=e.meaning) for e in MODES]
    return schema.SessionModeState(current_mode_id=mode_of(state).id, available_modes=modes)


def config_options(about: Opened, state: EditorState) -> ConfigOptions:
    """Config options of a session; model and effort only for runners that take them."""
    modes = [
        schema.SessionConfigSelectOption(value=e.id, name=e.name, description=e.meaning)
        for e in MODES
    ]
    found: ConfigOptions = [_select("mode", "Mode", "mode", mode_of(state).id, modes)]
    if about.models:
        current = state.model or about.models[0]
        models = [
            schema.SessionConfigSelectOption(value=each, name=each)
            for each in dict.fromkeys((current, *about.models))
        ]
        found.append(_select("model", "Model", "model", current, models))
        efforts = [
            schema.SessionConfigSelectOption(value=each, name=each) for each in (DEFAULT, *EFFORTS)
        ]
        found.append(_select("effort", "Effort", "thought_level", state.effort or DEFAULT, efforts))
    return found


def chosen(about: Opened, state: EditorState, option: str, value: object) -> EditorState | None:
    """The state with an option set; None if the option or the value is unknown."""
    for each in config_options(about, state):
        if each.id != option or not isinstance(each, schema.SessionConfigOptionSelect):
            continue
        known = [e.value for e in each.options if isinstance(e, schema.SessionConfigSelectOption)]
        is_model = option == "model" and isinstance(value, str) and "/" in value.strip("/")
        if not isinstance(value, str) or (value not in known and not is_model):
            return None
        if option == "effort":
            return state._replace(effort="" if value == DEFAULT else value)
        return state._replace(**{option: value})
    return None


def commands_update() -> schema.AvailableCommandsUpdate:
    """The available commands of the protocol."""
    return schema.AvailableCommandsUpdate(
        session_update="available_commands_update",
        available_commands=[
            schema.AvailableCommand(name=name, description=meaning) for name, meaning, _ in COMMANDS
        ],
    )


def command_in(text: str, about: Opened) -> tuple[str, tuple[str, ...]] | None:
    """The slash command in a prompt with the holdfast arguments to run; None for other prompts."""
    name, _, rest = text.strip().removeprefix("/").partition(" ")
    if not text.strip().startswith("/") or rest.strip():
        return None
    for known, _, argv in COMMANDS:
        if known == name:
            draft = ("--draft", about.draft) if name in _IN_DRAFT else ()
            return name, (*argv, *draft)
    return None


def servers_of(given: Sequence[object]) -> tuple[EditorServer, ...]:
    """The MCP servers of an editor with a supported transport: stdio or HTTP."""
    found: dict[str, EditorServer] = {}
    for each in given:
        match each:
            case schema.McpServerStdio(name=name, command=command, args=args, env=env):
                variables = {variable.name: variable.value for variable in env}
                server = EditorServer(_named(name), command, tuple(args), variables)
            case schema.McpServerHttp(name=name, url=url, headers=headers):
                fields = {header.name: header.value for header in headers}
                server = EditorServer(_named(name), url=url, headers=fields)
            case _:
                continue
        found[server.name] = server
    return tuple(found.values())


def servers_refused(servers: Sequence[EditorServer]) -> schema.AgentThoughtChunk:
    """The notice that the runner of a session does not support MCP servers from an editor."""
    names = ", ".join(each.name for each in servers)
    return acp.update_agent_thought_text(
        f"Not connected: {names}. Only our own agent and Codex use the MCP servers of an "
        "editor (--runner native, --runner codex)."
    )


def server_call(server: EditorServer) -> schema.ToolCallUpdate:
    """The trust question about a server; shows names only, since values may be secret."""
    what = server.url or " ".join((server.command, *server.args))
    names = [f"variable {name}" for name in sorted(server.env)]
    names += [f"header {name}" for name in sorted(server.headers)]
    return schema.ToolCallUpdate(
        tool_call_id=f"mcp-{server.name}",
        title=f"Connect the MCP server {server.name}?",
        kind="execute",
        content=[
            schema.ContentToolCallContent(
                type="content",
                content=schema.TextContentBlock(type="text", text="\n".join([what, *names])),
            )
        ],
        raw_input={"server": server.name, "command": what},
    )


def _select(
    option: str,
    name: str,
    category: Literal["mode", "model", "thought_level"],
    current: str,
    options: list[schema.SessionConfigSelectOption],
) -> schema.SessionConfigOptionSelect:
    return schema.SessionConfigOptionSelect(
        id=option,
        name=name,
        category=category,
        current_value=current,
        options=options,
        type="select",
    )


def _named(name: str) -> str:
    return _UNFIT.sub("-", name).strip("-_")[:_NAME_MAX] or "server"
