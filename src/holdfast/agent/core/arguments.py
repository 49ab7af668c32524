"""Say what a tool takes, and read what it was given."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from holdfast.agent.failures import ToolRefused

Given = TypeVar("Given")
Schema = dict[str, object]


def text(description: str, *, of: tuple[str, ...] = ()) -> Schema:
    """A text, or one of a few words."""
    return {"type": "string", "description": description, **({"enum": list(of)} if of else {})}


def number(description: str, *, least: int = 0, most: int | None = None) -> Schema:
    """A whole number."""
    top = {} if most is None else {"maximum": most}
    return {"type": "integer", "description": description, "minimum": least, **top}


def claim(description: str) -> Schema:
    """Yes or no."""
    return {"type": "boolean", "description": description}


def several(description: str, of: Schema) -> Schema:
    """Any number of the same sort, but at least one."""
    return {"type": "array", "description": description, "items": of, "minItems": 1}


def fields(required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    """Several things by their names, and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def given(arguments: dict[str, object], sort: type[Given]) -> Given:
    """The arguments as what they are; ToolRefused if they are something else."""
    try:
        return msgspec.convert(arguments, sort)
    except msgspec.ValidationError as error:
        raise ToolRefused(reason=f"the arguments do not fit: {error}") from error
