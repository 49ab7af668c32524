"""Write the wire types of the Codex app-server from the schema that its own binary prints.

    python scripts/generate_codex_types.py CODEX_BINARY [TARGET]

The tables below say which messages matter; everything they lead to is generated with them, but
for what `RAW` names, which stays plain JSON. A union with a tag gets one more member, for what a
newer server adds; an enumeration is a plain string. In what only the server says, a member that is
missing is read as a blank, and a record as a record of blanks, unless `NEEDED` names it: every
version of Codex adds and drops members, and one that no caller uses must not break every answer.
"""

# pyright: basic
# A JSON schema is nearly all Any, and strict rules about unknown types say nothing here.

from __future__ import annotations

import json
import keyword
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Schema = Mapping[str, Any]  # Any: JSON, as the binary prints it

TARGET = Path(__file__).parent.parent / "src/holdfast/codex/wire/generated.py"

REQUESTS = {  # method: what its types are called in the schema, without Params and Response
    "initialize": "Initialize",
    "thread/start": "ThreadStart",
    "thread/resume": "ThreadResume",
    "thread/fork": "ThreadFork",
    "thread/read": "ThreadRead",
    "thread/list": "ThreadList",
    "thread/loaded/list": "ThreadLoadedList",
    "thread/turns/list": "ThreadTurnsList",
    "thread/items/list": "ThreadItemsList",
    "thread/name/set": "ThreadSetName",
    "thread/archive": "ThreadArchive",
    "thread/unarchive": "ThreadUnarchive",
    "thread/compact/start": "ThreadCompactStart",
    "thread/unsubscribe": "ThreadUnsubscribe",
    "thread/backgroundTerminals/list": "ThreadBackgroundTerminalsList",
    "thread/backgroundTerminals/terminate": "ThreadBackgroundTerminalsTerminate",
    "turn/start": "TurnStart",
    "turn/steer": "TurnSteer",
    "turn/interrupt": "TurnInterrupt",
    "model/list": "ModelList",
    "config/read": "ConfigRead",
    "command/exec": "CommandExec",
    "fs/readFile": "FsReadFile",
}
NOTIFICATIONS = (
    "error",
    "warning",
    "configWarning",
    "deprecationNotice",
    "thread/started",
    "thread/status/changed",
    "thread/archived",
    "thread/unarchived",
    "thread/deleted",
    "thread/closed",
    "thread/reverted",
    "thread/name/updated",
    "thread/goal/cleared",
    "thread/tokenUsage/updated",
    "thread/compacted",
    "turn/started",
    "turn/completed",
    "turn/diff/updated",
    "turn/plan/updated",
    "item/started",
    "item/completed",
    "item/agentMessage/delta",
    "item/plan/delta",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/summaryPartAdded",
    "item/reasoning/textDelta",
    "item/commandExecution/outputDelta",
    "item/commandExecution/terminalInteraction",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "item/mcpToolCall/progress",
    "serverRequest/resolved",
    "mcpServer/startupStatus/updated",
    "account/rateLimits/updated",
    "model/rerouted",
)
SERVER_REQUESTS = (
    "item/commandExecution/requestApproval",
    "item/fileChange/requestApproval",
    "item/permissions/requestApproval",
    "item/tool/requestUserInput",
    "item/tool/call",
    "mcpServer/elicitation/request",
)
RAW = {  # too deep, too much in motion, or of no concern to a client that only passes them on
    "AdditionalPermissionProfile",
    "AsyncUserInputQuestion",
    "CollaborationMode",
    "Config",
    "ConfigLayer",
    "ConfigLayerMetadata",
    "DynamicToolSpec",
    "FunctionCallOutputBody",
    "GrantedPermissionProfile",
    "ImageGenerationFailure",
    "ImageGenerationInputImage",
    "McpAppUi",
    "McpElicitationSchema",
    "McpToolCallAppContext",
    "MemoryCitation",
    "MisalignmentErrorDetails",
    "ModelAccessPrograms",
    "ModelAvailabilityNux",
    "ModelUpgradeInfo",
    "RequestPermissionProfile",
    "ResponseItem",
    "SelectedCapabilityRoot",
    "SessionSource",
    "ThreadEnvironment",
    "ThreadExtra",
    "ThreadItemsListCursor",
    "ThreadReadState",
    "ThreadSection",
    "TurnEnvironmentParams",
    "TurnToolOutput",
}
NEEDED = {  # all that a server cannot leave out; docs/how-to/embed-codex.md lists it
    ("Thread", "id"),  # nothing can be done with what has no name
    ("Turn", "id"),
    ("CommandExecutionRequestApprovalParams", "itemId"),  # nobody may agree to what is not shown
    ("FileChangeRequestApprovalParams", "itemId"),
    ("PermissionsRequestApprovalParams", "permissions"),
}
FLAT = {"McpServerElicitationRequestParams"}  # a union at the top of a message: one type for all
ERROR_INFO = "CodexErrorInfo"  # its names become an enumeration, to be matched on
PRIMITIVES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
BLANKS = {
    "string": '""',
    "integer": "0",
    "number": "0.0",
    "boolean": "False",
    "array": "()",
    "null": "None",
}
FACTORY = "factory:"  # marks a blank that is made anew each time
IDS = ("threadId", "turnId", "itemId")
NAMES_LISTED_MAX = 12


@dataclass
class Generator:
    """Collects definitions in an order in which each one's parts come before it."""

    definitions: Mapping[str, Schema]
    written: set[str]  # what we write: there a missing member is our mistake
    texts: dict[str, str] = field(default_factory=dict)
    promises: dict[str, str] = field(default_factory=dict)
    underway: set[str] = field(default_factory=set)

    def expression(self, schema: Schema | bool) -> str:
        """Write a schema as a type, defining what it refers to."""
        if isinstance(schema, bool) or not schema:
            return "object"
        if "$ref" in schema:
            return self.named(schema["$ref"].rpartition("/")[2])
        parts = schema.get("oneOf") or schema.get("anyOf") or schema.get("allOf")
        if parts:
            return _joined(self.expression(part) for part in parts)
        types = schema.get("type", "object")
        if isinstance(types, list):
            return _joined(self.expression({**schema, "type": each}) for each in types)
        return self.built(types, schema)

    def built(self, type_: str, schema: Schema) -> str:
        """Write a schema of one type of JSON."""
        match type_:
            case "array":
                return f"tuple[{self.expression(schema.get('items', True))}, ...]"
            case "object":
                return f"dict[str, {self.expression(schema.get('additionalProperties') or True)}]"
            case "null":
                return "None"
            case _:
                return PRIMITIVES[type_]

    def named(self, name: str) -> str:
        """Make sure that a definition is written, and say how to refer to it."""
        schema = self.definitions[name]
        if name in RAW:
            return "object"
        if schema.get("type") in PRIMITIVES and "enum" not in schema:
            return PRIMITIVES[schema["type"]]
        if name not in self.texts and name not in self.underway:
            self.underway.add(name)
            self.texts[name] = self.definition(name, schema)
        return name

    def definition(self, name: str, schema: Schema) -> str:
        """Write one definition: a record, a tagged union or another name for a plain type."""
        parts = schema.get("oneOf") or schema.get("anyOf") or []
        if tag := _tag(parts):
            if name not in FLAT:
                return self.union(name, schema, parts, tag)
            return self.record(name, _merged(schema, parts, tag), of=name)
        if "properties" in schema or (schema.get("type") == "object" and not parts):
            return self.record(name, schema, of=name)
        known = [value for part in (parts or [schema]) for value in part.get("enum", ())]
        if name == ERROR_INFO:
            self.texts["CodexErrorKind"] = _enumeration(name, schema, known)
        listed = ", ".join(known[:NAMES_LISTED_MAX]) + (", …" * (len(known) > NAMES_LISTED_MAX))
        note = f'"""{_wrapped(f"Known: {listed}.")}"""\n' if known and name != ERROR_INFO else ""
        return f"{name} = {_joined(self.expression(part) for part in parts) or 'str'}\n{note}"

    def union(self, name: str, schema: Schema, parts: list[Schema], tag: str) -> str:
        """Write each member of a tagged union, one for what is foreign, and their union."""
        members, shared = [], set.intersection(*(set(part["properties"]) for part in parts)) - {tag}
        for part in parts:
            value = part["properties"][tag]["enum"][0]
            member = part.get("title") or value[0].upper() + value[1:] + name
            self.promises.setdefault(member, f"A {name} of the kind `{value}`.")
            both = {**schema.get("properties", {}), **part["properties"]}
            text = self.record(member, {**part, "properties": both}, of=name, tag=(tag, value))
            self.texts[member] = text
            members.append(member)
        foreign = f"Foreign{name}"
        common = {each: parts[0]["properties"][each] for each in sorted(shared)}
        lines = [
            _member(key, self.expression(kind), default=self.blank(kind))
            for key, kind in common.items()
        ]
        lines = [
            'kind: str = ""',
            *lines,
            "fields: dict[str, object] = field(default_factory=dict[str, object])",
        ]
        promise = f"A {name} of a kind that this version does not know."
        self.texts[foreign] = _class(foreign, promise, lines, tag=(tag, "?"))
        return f"{name} = {' | '.join([*members, foreign])}\n"

    def record(
        self, name: str, schema: Schema, *, of: str, tag: tuple[str, str] | None = None
    ) -> str:
        """Write a record of a definition: what is required first, then all else with a default."""
        properties = {**schema.get("properties", {})}
        for part in schema.get("anyOf", ()):  # members of which one or the other is there
            properties |= part.get("properties", {})
        required = set(schema.get("required", ()))
        blanks: dict[str, str] = {}
        if of not in self.written:
            optional = {key for key in required if (name, key) not in NEEDED}
            found = {key: self.blank(properties[key]) for key in optional}
            blanks = {key: blank for key, blank in found.items() if blank is not None}
            required -= blanks.keys()
        if tag:
            properties.pop(tag[0], None)
        lines = []
        for key in sorted(
            properties,
            key=lambda key: (
                key not in required,
                not (_is_id(key) or blanks.get(key, "").startswith(FACTORY)) or key not in blanks,
                key not in blanks,
                _rank(key),
                key,
            ),
        ):
            kind = self.expression(properties[key])
            default = blanks.get(key) or _default(_plain(properties[key]).get("default"))
            if key not in required and default == "None":
                kind = _joined([kind, "None"])
            lines.append(_member(key, kind, default=None if key in required else default))
        return _class(name, self.promise(name, schema), lines, tag)

    def blank(self, schema: Schema | bool) -> str | None:
        """Say what stands for a value that is missing; None where nothing can."""
        schema = _plain(schema)
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return "None" if name in RAW else self.blank_of(name, self.definitions[name])
        parts = schema.get("oneOf") or schema.get("anyOf") or schema.get("allOf")
        types = schema.get("type", "object")
        if parts:
            blanks = [self.blank(part) for part in parts]
        elif types == "object":
            blanks = [f"{FACTORY}{self.expression(schema)}" if schema else "None"]
        else:
            blanks = [BLANKS.get(each) for each in ([types] if isinstance(types, str) else types)]
        return "None" if "None" in blanks else blanks[0]

    def blank_of(self, name: str, schema: Schema) -> str | None:
        """Say what stands for a missing value of a definition: for a record, one of blanks."""
        parts = schema.get("oneOf") or schema.get("anyOf") or []
        if _tag(parts) and name not in FLAT:
            return f"{FACTORY}Foreign{self.named(name)}"
        if "properties" not in schema:
            return self.blank(schema)
        required = schema.get("required", ())
        is_needed = any(
            (name, key) in NEEDED or self.blank(schema["properties"][key]) is None
            for key in required
        )
        return None if is_needed or name in self.written else f"{FACTORY}{self.named(name)}"

    def promise(self, name: str, schema: Schema) -> str:
        """Say in one sentence what a record is."""
        if name in self.promises:
            return self.promises[name]
        text = " ".join(schema.get("description", "").split())
        sentence = re.split(r"(?<=\.)\s", text)[0].replace("\\", "").removeprefix("EXPERIMENTAL - ")
        if 10 < len(sentence) <= 88 and sentence.endswith("."):
            return sentence[0].upper() + sentence[1:]
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
        return f"What the protocol calls a {words}."


def _joined(parts: Iterator[str] | list[str]) -> str:
    """Join types to a union, each once, with None at the end."""
    atoms = dict.fromkeys(atom for part in parts for atom in _atoms(part))
    if "object" in atoms:
        return "object"
    return " | ".join(sorted(atoms, key=lambda atom: atom == "None"))


def _atoms(expression: str) -> list[str]:
    """Split a union at its outermost bars."""
    return re.split(r" \| (?![^\[]*\])", expression) if expression else []


def _rank(key: str) -> int:
    """Put ids in the order in which the server writes them: such records are read faster."""
    return IDS.index(key) if key in IDS else len(IDS)


def _plain(schema: Schema | bool) -> Schema:
    return {} if isinstance(schema, bool) else schema


def _tag(parts: list[Schema]) -> str | None:
    """Name the member that tells the parts of a union apart, if there is one."""
    for tag in ("type", "kind", "mode"):
        if parts and all(
            len(_plain(part.get("properties", {}).get(tag, {})).get("enum", ())) == 1
            for part in parts
        ):
            return tag
    return None


def _merged(schema: Schema, parts: list[Schema], tag: str) -> Schema:
    """Make one record of a union: every member of every part, required where all require it."""
    properties: dict[str, Any] = dict(schema.get("properties", {}))  # Any: JSON schema
    for part in parts:
        properties |= part["properties"]
    everywhere = set.intersection(*(set(part["required"]) for part in parts)) - {tag}
    properties[tag] = {"type": "string"}
    return {"properties": properties, "required": [*schema["required"], tag, *everywhere]}


def _member(key: str, kind: str, *, default: str | None) -> str:
    name = _snake(key)
    name = f"{name}_" if keyword.iskeyword(name) else name
    alias = "" if _camel(name) == key else f'name="{key}"'
    if default is None:
        return f"{name}: {kind}" + (f" = field({alias})" if alias else "")
    if default.startswith(FACTORY):
        more = f", {alias}" if alias else ""
        return f"{name}: {kind} = field(default_factory={default.removeprefix(FACTORY)}{more})"
    return f"{name}: {kind} = " + (f"field(default={default}, {alias})" if alias else default)


def _is_id(key: str) -> bool:
    return key == "id" or key.endswith("Id")


def _default(value: object) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(_frozen(value))


def _frozen(value: object) -> object:
    return tuple(_frozen(each) for each in value) if isinstance(value, list) else value


def _class(name: str, promise: str, lines: list[str], tag: tuple[str, str] | None = None) -> str:
    tagged = f', tag_field="{tag[0]}", tag="{tag[1]}"' if tag else ""
    body = "".join(f"    {line}\n" for line in lines)
    return f'class {name}(WireMessage, frozen=True{tagged}):\n    """{promise}"""\n' + (
        body and "\n" + body
    )


def _enumeration(name: str, schema: Schema, known: list[str]) -> str:
    """Write the names of an error as an enumeration: plain ones, and those that carry details."""
    parts = [part for part in schema["anyOf"] if len(part.get("properties", ())) == 1]
    values = [*known, *(next(iter(part["properties"])) for part in parts)]
    lines = [f'{_snake(value).upper()} = "{value}"' for value in values]
    body = "".join(f"    {line}\n" for line in lines)
    return f'class CodexErrorKind(StrEnum):\n    """The names that a {name} may have."""\n\n{body}'


def _wrapped(text: str) -> str:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) > 88:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(lines)


def _snake(name: str) -> str:
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.lstrip("_"))
    return name.lower()


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(part.title() for part in tail)


def _reached(definitions: Mapping[str, Schema], names: Iterable[str]) -> set[str]:
    """Name all definitions that these lead to, themselves included."""
    found: set[str] = set()
    ahead = set(names)
    while ahead:
        found |= ahead
        text = json.dumps([definitions[name] for name in ahead - RAW])
        ahead = set(re.findall(r'"\$ref": "[^"]*/(\w+)"', text)) - found
    return found


def _methods(definitions: Mapping[str, Schema], direction: str) -> dict[str, str]:
    """Map each method of one direction to the name of its params."""
    found = {}
    for part in definitions[direction]["oneOf"]:
        params = part["properties"].get("params", {}).get("$ref", "")
        found[part["properties"]["method"]["enum"][0]] = params.rpartition("/")[2]
    return found


def _table(name: str, promise: str, rows: Mapping[str, str]) -> str:
    body = "".join(f'    "{method}": {kind},\n' for method, kind in rows.items())
    return f'{name}: dict[str, type[WireMessage]] = {{\n{body}}}\n"""{promise}"""\n'


def generate(schema: Schema, version: str) -> str:
    """Write the module for one version of the schema."""
    root = dict(schema["definitions"])
    definitions = {**root.pop("v2"), **root}
    news = {each: _methods(definitions, "ServerNotification")[each] for each in NOTIFICATIONS}
    asked = {each: _methods(definitions, "ServerRequest")[each] for each in SERVER_REQUESTS}
    results = {method: f"{stem}Response" for method, stem in REQUESTS.items()}
    ours = {f"{stem}Params" for stem in REQUESTS.values()}
    ours |= {kind.replace("Params", "Response") for kind in asked.values()}
    generator = Generator(definitions, _reached(definitions, ours))
    promises = generator.promises
    promises |= {
        f"{stem}Params": f"What `{method}` is asked with." for method, stem in REQUESTS.items()
    }
    promises |= {kind: f"What `{method}` is answered with." for method, kind in results.items()}
    promises |= {kind: f"The news `{method}`." for method, kind in news.items()}
    for method, kind in asked.items():
        promises[kind] = f"What the server asks with `{method}`."
        promises[kind.replace("Params", "Response")] = f"What `{method}` is to be answered with."
    for stem in REQUESTS.values():
        generator.named(f"{stem}Params")
        generator.named(f"{stem}Response")
    for kind in news.values():
        generator.named(kind)
    for kind in asked.values():
        generator.named(kind)
        generator.named(kind.replace("Params", "Response"))
    head = f"""# Generated by scripts/generate_codex_types.py from codex {version}; do not edit.
\"\"\"What the Codex app-server and its clients say to each other.\"\"\"

from __future__ import annotations

from enum import StrEnum

from msgspec import field

from holdfast.codex.wire.message import WireMessage

"""
    tables = [
        _table("RESULTS", "What each request is answered with.", results),
        _table("NOTIFICATIONS", "What each piece of news from the server says.", news),
        _table("SERVER_REQUESTS", "What the server asks of its client with each method.", asked),
    ]
    return head + "\n\n".join([*generator.texts.values(), *tables])


def printed(binary: Path) -> tuple[Schema, str]:
    """Let the binary print its schema, experimental parts included, and its version."""
    with tempfile.TemporaryDirectory() as home:
        env = {"CODEX_HOME": home, "PATH": os.defpath}
        command = [
            str(binary),
            "app-server",
            "generate-json-schema",
            "--experimental",
            "--out",
            home,
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=60, env=env)
        asked = [str(binary), "--version"]
        said = subprocess.run(
            asked, check=True, capture_output=True, timeout=60, env=env, text=True
        )
        text = Path(home, "codex_app_server_protocol.schemas.json").read_text()
    return json.loads(text), said.stdout.split()[-1]


def formatted(text: str) -> str:
    """Lay source out as all source here is laid out."""
    ruff = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TARGET), "-"]
    done = subprocess.run(ruff, check=True, capture_output=True, timeout=60, input=text, text=True)
    return done.stdout


def main() -> None:
    """Write the module to the place where it is imported from, or to another."""
    binary, target = Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else TARGET
    schema, version = printed(binary)
    target.write_text(formatted(generate(schema, version)))


if __name__ == "__main__":
    main()
