"""How a stream wants to be written to."""

from __future__ import annotations

import io
from pathlib import Path

from holdfast.app.settings import parse
from holdfast.cli.declarations import Misuse, Request
from holdfast.cli.output import look_for
from holdfast.cli.render.style import FINE, PLAIN, WIDTH_MOST, Look

SETTINGS = parse({}, person=Path("/home/person"))


def test_a_file_is_wide_and_plain_unless_colour_is_asked_for() -> None:
    file = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")

    assert look_for(file, Request(), SETTINGS) == Look(WIDTH_MOST, is_coloured=False, signs=FINE)
    assert look_for(file, Request(colour="always"), SETTINGS).is_coloured


def test_a_stream_that_is_closed_and_words_that_mean_nothing_have_a_look_too() -> None:
    misuse = Misuse("problem", "read on", is_json=False)

    assert look_for(None, misuse, None) == Look(WIDTH_MOST, is_coloured=False, signs=PLAIN)
