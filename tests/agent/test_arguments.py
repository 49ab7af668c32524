"""What a tool takes is said in a schema, and what it is given is read by it."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.agent.arguments import claim, fields, given, number, several, text
from holdfast.agent.failures import ToolRefused


class Asked(msgspec.Struct, frozen=True):
    path: str
    count: int = 1


def test_a_schema() -> None:
    made = fields(
        ("path",),
        path=text("Where.", of=("a", "b")),
        count=number("How many.", least=1, most=9),
        more=several("More.", claim("Whether.")),
    )

    assert made == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where.", "enum": ["a", "b"]},
            "count": {
                "type": "integer",
                "description": "How many.",
                "minimum": 1,
                "maximum": 9,
            },
            "more": {
                "type": "array",
                "description": "More.",
                "items": {"type": "boolean", "description": "Whether."},
                "minItems": 1,
            },
        },
        "required": ["path"],
        "additionalProperties": False,
    }


def test_what_is_given_is_read_or_refused() -> None:
    assert given({"path": "x", "count": 2}, Asked) == Asked("x", 2)
    for wrong in ({}, {"path": 1}, {"path": "x", "count": "many"}):
        with pytest.raises(ToolRefused, match="do not fit"):
            given(dict(wrong), Asked)
