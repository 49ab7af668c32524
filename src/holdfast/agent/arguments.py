"""JSON Schemas of tool parameters, and validation of arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeGuard, TypeVar

import msgspec

from holdfast.agent.failures import ToolRefused

Given = TypeVar("Given")
Schema = dict[str, object]


def text(description: str, *, of: tuple[str, ...] = ()) -> Schema:
    """Schema of a string, or of an enumeration."""
    return {"type": "string", "description": description, **({"enum": list(of)} if of else {})}


def number(description: str, *, least: int = 0, most: int | None = None) -> Schema:
    """Schema of an integer."""
    top = {} if most is None else {"maximum": most}
    return {"type": "integer", "description": description, "minimum": least, **top}


def claim(description: str) -> Schema:
    """Schema of a boolean."""
    return {"type": "boolean", "description": description}


def several(description: str, of: Schema) -> Schema:
    """Schema of a non-empty array."""
    return {"type": "array", "description": description, "items": of, "minItems": 1}


def fields(required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    """Schema of an object without additional properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def given(arguments: dict[str, object], sort: type[Given]) -> Given:
    """Convert arguments to a struct; raises ToolRefused if they do not match."""
    try:
        return msgspec.convert(arguments, sort)
    except msgspec.ValidationError as error:
        raise ToolRefused(reason=f"the arguments do not fit: {error}") from error


# Validation against the schema of a tool.

_DEPTH_MAX: Final = 32
_PROBLEMS_MAX: Final = 5
_KINDS: Final[dict[str, type | tuple[type, ...]]] = {
    "object": Mapping,
    "array": (list, tuple),
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}


def arguments_of(text: str) -> dict[str, object] | str:
    """Parse arguments from JSON; return an error text if that fails."""
    try:
        found: object = msgspec.json.decode(text.strip() or "{}")
    except (msgspec.DecodeError, RecursionError) as error:
        return f"the arguments are no JSON ({error})"
    if not _is_mapping(found):
        return "the arguments are no JSON object"
    return dict(found)


def misfit(arguments: Mapping[str, object], schema: Mapping[str, object]) -> str:
    """Return why arguments do not match the schema, or ""; supports a subset of JSON Schema."""
    problems: list[str] = []
    for problem in _problems(arguments, schema, "", 0):
        problems.append(problem)
        if len(problems) == _PROBLEMS_MAX:
            break
    return "; ".join(problems)


def _problems(value: object, schema: Mapping[str, object], where: str, depth: int) -> Iterator[str]:
    name = where or "the arguments"
    wanted = schema.get("type")
    kinds = [wanted] if isinstance(wanted, str) else wanted
    if _is_list(kinds) and not any(_is_kind(value, str(kind)) for kind in kinds):
        yield f"{name} must be {' or '.join(map(str, kinds))}"
        return
    choices = schema.get("enum")
    if _is_list(choices) and value not in choices:
        yield f"{name} must be one of {', '.join(map(str, choices))}"
    if depth > _DEPTH_MAX:
        return
    if _is_mapping(value):
        yield from _object_problems(value, schema, where, depth)
    elif _is_list(value):
        items = schema.get("items")
        if _is_mapping(items):
            for number, each in enumerate(value):
                yield from _problems(each, items, f"{where}[{number}]", depth + 1)


def _object_problems(
    value: Mapping[str, object], schema: Mapping[str, object], where: str, depth: int
) -> Iterator[str]:
    prefix = f"{where}." if where else ""
    required = schema.get("required")
    if _is_list(required):
        for each in required:
            if each not in value:
                yield f"{prefix}{each} is missing"
    known = schema.get("properties")
    if not _is_mapping(known):
        return
    for key, inner in value.items():
        expected = known.get(key)
        if _is_mapping(expected):
            yield from _problems(inner, expected, f"{prefix}{key}", depth + 1)
        elif schema.get("additionalProperties") is False:
            yield f"{prefix}{key} is not known"


def _is_kind(value: object, kind: str) -> bool:
    if isinstance(value, bool):  # bool is a subclass of int
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _KINDS.get(kind, object))


def _is_mapping(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, Mapping)


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, list | tuple)
