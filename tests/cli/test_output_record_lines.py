"""A record is one line, whatever is in it."""

from __future__ import annotations

import json

from holdfast.cli.output import json_line


def test_a_line_is_one_line_of_ascii() -> None:
    record: dict[str, object] = {"text": "zwei\nZeilen\u2028 ü"}

    assert json_line(record).isascii()
    assert json_line(record).count("\n") == 1
    assert json.loads(json_line(record)) == record
