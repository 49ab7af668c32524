"""What became of conflicts, laid out with what to do next."""

from __future__ import annotations

import pytest

from holdfast.cli.render.changes import ShownMerge, merge_page, merge_record
from holdfast.cli.render.style import look
from holdfast.nouns import RelativePath

PAGE = look(wanted="never", is_terminal=True, colourless=True, encoding="ascii", columns=80)
at = RelativePath.of


@pytest.mark.promise("W5")
def test_what_is_open_says_how_to_go_on() -> None:
    shown = ShownMerge(
        draft="draft_1", merged=(at("m"),), marked=(at(b"k\x1b"),), unresolved=(at("u"),)
    )
    page = merge_page(shown, PAGE)
    assert "\x1b" not in page
    assert "draft run --draft draft_1 --tty -- $EDITOR PATH" in page
    assert "holdfast draft merge --draft draft_1 --theirs PATH" in page
    assert merge_record(shown)["unresolved"] == ["u"]
    assert "Nothing to merge" in merge_page(ShownMerge(draft="draft_1"), PAGE)
