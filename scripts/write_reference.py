"""Write the pages of the reference that are made from the code: settings, events, protocols.

    python scripts/write_reference.py docs/reference

Nothing is said here that the code does not say: fields and defaults are those of the types that
are sent, meanings are their first sentences, methods are those that somebody serves.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import typing
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import acp.meta
import msgspec

import holdfast
from holdfast.acp import server as editing
from holdfast.acp import turn as editor_turn
from holdfast.acp import updates
from holdfast.app import config_rules as config
from holdfast.cli.catalogue import COMMANDS, COMMON
from holdfast.exec import protocol as wire
from holdfast.exec.server import model as exec_model
from holdfast.host import model as host_model
from holdfast.host import protocol
from holdfast.host import supervision as sitting
from holdfast.rpc import HELLO, Hello
from holdfast.runners import model as runner_model

SOURCE = Path(holdfast.__file__).parent
MADE = "Made by `make docs` from the code; do not edit.\n"
NONE = "—"

EXEC_NEWS = {  # which the server tells, and which it is told; methods have handlers, news have not
    "process/output": wire.Output,
    "process/exited": wire.Exited,
    "process/closed": wire.Closed,
    "http/request/bodyDelta": wire.HttpDelta,
}
EXEC_TOLD = {"process/taken": wire.TakenParams, "http/request/taken": wire.HttpTaken}
HOST_NEWS = {
    protocol.RECORDS: protocol.RecordBatch,
    protocol.DELTAS: runner_model.Delta,
    protocol.TROUBLE: protocol.JournalTrouble,
}
EDITOR_NEWS = {
    editor_turn.CRASHED: (("sessionId", "attempt", "reason"), host_model.AttemptStarted),
    editor_turn.BACKEND: (("sessionId", "state"), sitting.Reconnecting | sitting.Unresponsive),
}


PARTS = {"_streams": "FileStreams", "_context": "ConnectionContext"}  # by what others hold them as


class Method(NamedTuple):
    """A method that somebody serves: its params and result by the names of their types."""

    name: str
    params: str
    result: str
    meaning: str


def pages() -> dict[str, str]:
    """Every page, by its name."""
    return {
        "settings.md": settings_page(),
        "events.md": events_page(),
        "protocols.md": protocols_page(),
    }


def settings_page() -> str:
    """What can be settled, and where."""
    head = ("key", "may be", "otherwise", "flag", "variable", "a project may")
    variables = {key: name for name, key in config.VARIABLES.items()}
    rows = [
        (
            f"`{key}`",
            each.allowed,
            NONE if each.otherwise is None else f"`{_toml(each.otherwise)}`",
            _flag(key),
            f"`{variables[key]}`" if key in variables else NONE,
            "lower it" if key.startswith(config.BUDGET) else "not say it",
        )
        for key, each in config.KEYS.items()
    ]
    where = """\
The first that says something counts: a flag, the environment, your own `config.toml`, and else what
stands under *otherwise*. A project's `.holdfast.toml` counts once it is trusted, and only narrows.
`budget.steps` is `steps` in the table `[budget]`. What each is for:
[how to settle things](../how-to/settle-things.md). What counts where you are:
`holdfast config show --origin`.
"""
    return "\n".join(["# Settings\n", MADE, where, *_table(head, rows), ""])


def _flag(key: str) -> str:
    chat = next(each for each in COMMANDS if each.name == "chat")
    flags = {flag for option in (*chat.options, *COMMON) for flag in option.flags}
    return f"`--{key}`" if f"--{key}" in flags else NONE


def _toml(value: config.Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def events_page() -> str:
    """What is written down of a session, and what its agent tells."""
    seen = """\
Clients that use `holdfast.host.supervise_host` receive every record with its sequence number,
exactly once and in order, deltas of what is still streaming, and these events about the host:
"""
    kept = """\
A line of `journal.jsonl` in the directory of a session, and a record of `holdfast sessions show
--json`: `type` is its name here.
"""
    told = """\
What a runner emits in a turn: the `event` of a `happened` record, except for `delta`, which is only
displayed.
"""
    own = [sitting.Reconnecting, sitting.Reconnected, sitting.Unresponsive, sitting.Responsive]
    lines = [
        "# Events\n",
        MADE,
        "## Records of a session\n",
        kept,
        *_structs(typing.get_args(host_model.AnyRecord)),
        "",
        "## What a runner tells\n",
        told,
        *_structs(typing.get_args(runner_model.AnyEvent)),
        "",
        "## What is heard at a seat\n",
        seen,
        *_table(
            ("news", "what", "meaning"),
            ((f"`{e.__name__}`", _fields(e), _sentence(e)) for e in own),
        ),
        "",
    ]
    return "\n".join(lines)


def protocols_page() -> str:
    """What can be said to a host, to an exec-server and to us as an agent of an editor."""
    lines = ["# Protocols\n", MADE, *_host(), *_exec_server(), *_editor()]
    return "\n".join(lines)


def _host() -> Iterator[str]:
    yield "## A host\n"
    yield f"""\
JSON-RPC over a Unix socket, a message a line. The first word is `{HELLO}`: the protocol is
`{protocol.PROTOCOL}`, versions {protocol.OLDEST} to {protocol.NEWEST}. `ping` is answered with how
long each loop of the host has made no progress. Commands have an `id`: said twice, they are done
once.
"""
    found = [Method(HELLO, Hello.__name__, Hello.__name__, _sentence(Hello))]
    found += _served(SOURCE / "host", vars(protocol))
    yield from _methods(found, (host_model, protocol))
    yield "\nNews; of `deltas` a list comes at once:\n"
    yield from _news(HOST_NEWS)
    yield ""


def _exec_server() -> Iterator[str]:
    yield "## An exec-server\n"
    yield """\
JSON-RPC over WebSocket (also over a Unix socket) or standard input and output, as the exec-server
of Codex speaks it. A client says `initialize`, then the news `initialized`. What is ours is used
only where the other side has the capability; a Codex client never sees it.
"""
    yield from _methods(_served(SOURCE / "exec/server", {}), (wire, exec_model))
    yield "\nNews of the server:\n"
    yield from _news(EXEC_NEWS)
    yield "\nNews of the client, besides `initialized`:\n"
    yield from _news(EXEC_TOLD)
    yield "\nCapabilities (`environmentInfo.capabilities`), all ours:\n"
    yield _fields(wire.ServerCapabilities).replace("?", "") + "\n"


def _editor() -> Iterator[str]:
    yield "## An agent for an editor\n"
    yield f"""\
The Agent Client Protocol, version {acp.meta.PROTOCOL_VERSION}, over standard input and output
(`holdfast acp`). Methods that are served:
"""
    rows = []
    for key, name in acp.meta.AGENT_METHODS.items():
        noun, _, verb = key.partition("_")
        within = verb.replace("_", f"_{noun}_", 1)  # set_mode of a session is set_session_mode
        spellings = dict.fromkeys((key, verb, f"{verb}_{noun}", f"{verb}_{noun}s", within))
        served = (getattr(editing.EditorAgent, each, None) for each in spellings if each)
        rows += [(f"`{name}`", _sentence(each)) for each in served if each is not None]
    yield from _table(("method", "meaning"), rows)
    yield "\nUpdates of a session (`session/update`) that are told:\n"
    told = [typing.get_args(_hint(e, "session_update"))[0] for e in typing.get_args(updates.Update)]
    yield ", ".join(f"`{each}`" for each in told) + "\n"
    yield "\nBeyond the protocol, the method that is served and the news that are told:\n"
    extra = [(f"`_{editing.PING}`", "any", _sentence(editing.EditorAgent.ext_method))]
    for name, (fields, kind) in EDITOR_NEWS.items():
        kinds = typing.get_args(kind) or (kind,)
        meaning = " Or: ".join(map(_sentence, kinds))
        extra.append((f"`_{name}`", ", ".join(f"`{each}`" for each in fields), meaning))
    yield from _table(("name", "what", "meaning"), extra)
    yield ""


def _hint(kind: type, name: str) -> object:
    return typing.get_type_hints(kind)[name]


def _served(directory: Path, constants: dict[str, object]) -> list[Method]:
    """The methods that are served in a directory, in the order in which they are named."""
    trees = [ast.parse(path.read_text()) for path in sorted(directory.rglob("*.py"))]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    functions = {
        (owner.name, each.name): each
        for owner in nodes
        if isinstance(owner, ast.ClassDef)
        for each in owner.body
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    found: list[Method] = []
    for owner in (node for node in nodes if isinstance(node, ast.ClassDef)):
        for named in (each for each in ast.walk(owner) if isinstance(each, ast.Dict)):
            for key, value in zip(named.keys, named.values, strict=True):
                name = _name(key, constants)
                if name is not None and isinstance(value, ast.Call) and _is_handler(value):
                    found.append(_method(name, value, owner.name, functions))
    return found


def _name(key: ast.expr | None, constants: dict[str, object]) -> str | None:
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        return key.value
    value = constants.get(key.id) if isinstance(key, ast.Name) else None
    return value if isinstance(value, str) else None


def _is_handler(call: ast.Call) -> bool:
    return ast.unparse(call.func) in {"Handler", "plain", "self._serving", "self._streaming"}


Functions = dict[tuple[str, str], ast.FunctionDef | ast.AsyncFunctionDef]


def _method(name: str, call: ast.Call, owner: str, functions: Functions) -> Method:
    """What serves a method: a function of the same class, or of the one that it names."""
    *params, target = call.args[:2]
    words = re.findall(r"\w+", ast.unparse(target))
    owners = [*words, *(PARTS[word] for word in words if word in PARTS), owner]
    served = next(
        functions[at, word] for at in owners for word in reversed(words) if (at, word) in functions
    )
    meaning = (ast.get_docstring(served) or "").partition("\n")[0]
    result = "" if served.returns is None else ast.unparse(served.returns)
    return Method(name, ast.unparse(params[0]) if params else "", result, meaning)


def _methods(found: Iterable[Method], modules: tuple[ModuleType, ...]) -> Iterator[str]:
    types = {name: each for module in modules for name, each in vars(module).items()}
    types[Hello.__name__] = Hello
    rows = []
    for each in found:
        params, result = types.get(each.params), types.get(each.result)
        is_told = isinstance(params, type) and issubclass(params, msgspec.Struct)
        meaning = each.meaning or (_sentence(params) if is_told else "")
        assert meaning, f"nobody says what {each.name} is for"
        rows.append((f"`{each.name}`", _fields(params), _fields(result), meaning))
    yield from _table(("method", "params", "result", "meaning"), rows)


def _news(news: dict[str, type]) -> Iterator[str]:
    rows = ((f"`{name}`", _fields(kind), _sentence(kind)) for name, kind in news.items())
    yield from _table(("news", "what", "meaning"), rows)


def _structs(kinds: Iterable[type[msgspec.Struct]]) -> Iterator[str]:
    rows = ((f"`{kind.__struct_config__.tag}`", _fields(kind), _sentence(kind)) for kind in kinds)
    yield from _table(("type", "what", "meaning"), rows)


def _fields(kind: object) -> str:
    """The fields as they are sent; those that may be left out have a question mark."""
    if not isinstance(kind, type):
        return NONE
    if issubclass(kind, msgspec.Struct):
        names = (
            f"`{e.encode_name}{'' if e.required else '?'}`" for e in msgspec.structs.fields(kind)
        )
    else:
        names = (f"`{name}`" for name in getattr(kind, "_fields", ()))
    return ", ".join(names) or NONE


def _sentence(what: object) -> str:
    return (inspect.getdoc(what) or "").partition("\n")[0]


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    yield _row(head)
    yield _row("---" for _ in head)
    yield from map(_row, rows)


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    for page, text in pages().items():
        (Path(sys.argv[1]) / page).write_text(text, encoding="utf-8")
