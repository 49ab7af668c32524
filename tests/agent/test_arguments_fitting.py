"""Arguments are what the tool wants, or it is said what is wrong with them."""

from __future__ import annotations

import pytest

from holdfast.agent.arguments import arguments_of, misfit

SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "deep": {"type": "boolean"},
        "sort": {"enum": ["a", "b"]},
        "maybe": {"type": ["string", "null"]},
        "edits": {"type": "array", "items": {"type": "object", "required": ["at"]}},
    },
    "required": ["path"],
    "additionalProperties": False,
}


FITS: list[tuple[dict[str, object], str]] = [
    ({"path": "a"}, ""),
    ({"path": "a", "count": 1, "share": 1, "deep": True, "sort": "a", "maybe": None}, ""),
    ({"path": "a", "count": 1.0, "edits": [{"at": 1}]}, ""),
    ({}, "path is missing"),
    ({"path": 1}, "path must be string"),
    ({"path": "a", "count": True}, "count must be integer"),
    ({"path": "a", "count": 1.5}, "count must be integer"),
    ({"path": "a", "share": "1"}, "share must be number"),
    ({"path": "a", "deep": 1}, "deep must be boolean"),
    ({"path": "a", "sort": "c"}, "sort must be one of a, b"),
    ({"path": "a", "maybe": 1}, "maybe must be string or null"),
    ({"path": "a", "edits": [{}, 1]}, "edits[0].at is missing; edits[1] must be object"),
    ({"path": "a", "other": 1}, "other is not known"),
]


@pytest.mark.parametrize(("arguments", "expected"), FITS)
def test_what_does_not_fit_is_named(arguments: dict[str, object], expected: str) -> None:
    assert misfit(arguments, SCHEMA) == expected


def test_what_a_schema_does_not_say_is_not_asked() -> None:
    assert misfit({"x": 1}, {}) == ""
    assert misfit({"x": 1}, {"type": "object", "properties": {"x": {"type": "strange"}}}) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", {}), (" {} ", {}), ('{"a":1}', {"a": 1})],
)
def test_arguments_are_an_object(text: str, expected: dict[str, object]) -> None:
    assert arguments_of(text) == expected


@pytest.mark.parametrize("text", ["{", "[]", "1", "null", "x" * 10, "[" * 100_000])
def test_what_is_no_object_is_said(text: str) -> None:
    found = arguments_of(text)

    assert isinstance(found, str)
    assert "JSON" in found
