"""Blocks are drawn so that they fit, fold and harm nobody."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.runners.model import PlanProgress, PlanStep
from holdfast.terminal.model import Block, Card, Note, Offer, Plan, Prompted, Style, Trouble, Words
from holdfast.terminal.rendering import FOLD, draw

BARE = Style(60, is_coloured=False)
COLOURED = Style(60)
_OURS = re.compile(r"\x1b\[[0-9;]*m")

TROUBLE = Trouble(
    "It broke",
    "It is broken. " * 8,
    (Offer("Again", "/retry"), Offer("See", "/diff")),
    ("code: X",),
)


def test_each_block_has_its_form() -> None:
    blocks: list[Block] = [
        Prompted("Go\non"),
        Words("I **will**: `x`"),
        Card("make", is_ok=False, status=2, output="no\n", paths=("a", "b")),
        Note("Careful", is_warning=True),
        Plan((PlanStep("look", PlanProgress.DONE), PlanStep("mend", PlanProgress.OPEN))),
    ]
    assert [line.rstrip() for line in draw(blocks, BARE).splitlines()] == [
        "> Go",
        "  on",
        "",
        "I will: x",
        "",
        "● make (exit 2)",
        "  │ no",
        "  └ changed a, b",
        "! Careful",
        "",
        "  ✓ look",
        "  · mend",
    ]


def test_a_long_output_is_folded_until_all_of_it_is_wanted() -> None:
    card = Card("x", output="".join(f"line {n}\n" for n in range(20)), is_ok=True)
    folded, whole = draw([card], BARE), draw([card], BARE, is_whole=True)

    assert f"… {20 - FOLD} more lines (Ctrl-O shows them)" in folded
    assert ("line 0\n" in folded, "line 19" in folded) == (False, True)
    assert "line 0" in whole
    assert "more lines" not in whole


def test_a_hint_takes_no_more_room_than_what_it_hides() -> None:
    card = Card("x", output="".join(f"line {n}\n" for n in range(FOLD + 1)), is_ok=True)

    assert "line 0\n" in draw([card], BARE)


@pytest.mark.parametrize("is_light", [False, True])
def test_what_is_to_be_read_has_the_ink_of_the_terminal(is_light: bool) -> None:
    blocks: list[Block] = [Prompted("said"), Note("known", is_warning=True), Note("told")]
    drawn = draw(blocks, Style(60, is_light=is_light))

    assert "\x1b[1msaid\x1b[0m" in drawn
    assert re.search(r"m!\x1b\[0m known\n", drawn)
    assert "  told\n" in drawn


def test_a_step_of_a_plan_is_folded_below_itself() -> None:
    plan = Plan((PlanStep("word " * 12, PlanProgress.BEGUN),))

    first, second = draw([plan], Style(40, is_coloured=False)).splitlines()
    assert (first[:8], second[:8]) == ("  ▸ word", "    word")


def test_lines_are_counted_only_as_far_as_they_are_known() -> None:
    output = "".join(f"{number}\n" for number in range(20))
    cut = draw([Card("x", output=output, left_out=5000)], BARE)

    assert f"{20 - FOLD} more lines that are kept" in cut
    assert "5,000 characters that were left out" in cut


def test_what_was_left_out_is_said() -> None:
    assert "5,000 characters that were left out" in draw([Card("x", left_out=5000)], BARE)


@pytest.mark.promise("S1")
def test_trouble_says_what_to_press_and_keeps_details_folded() -> None:
    shown = draw([TROUBLE], BARE)

    assert "✗ It broke" in shown
    assert "→ Again (Enter)" in shown
    assert "→ See (/diff)" in shown
    assert "code: X" not in shown
    assert "code: X" in draw([TROUBLE], BARE, is_whole=True)
    assert all(line.startswith("  ") for line in shown.splitlines()[1:])


def test_a_diff_is_coloured_and_without_colour_nothing_is() -> None:
    card = Card("edit", output="@@ -1 +1 @@\n-a\n+b\n", is_ok=True)

    assert "\x1b[32m" in draw([card], COLOURED)
    assert "\x1b" not in draw([card, TROUBLE, Words("**x** `y`")], BARE)


hostile = st.text(
    st.one_of(
        st.sampled_from("\x1b\x9b\x9d\x90\x07\x08\r\x7f\u202e\u2066\U000e0041[]?;0m2J*`_#|<>\n"),
        st.characters(),
    ),
    max_size=200,
)


@given(hostile, st.sampled_from([20, 40, 80, 200]))
def test_nothing_from_outside_is_obeyed(text: str, width: int) -> None:
    blocks: list[Block] = [
        Prompted(text),
        Words(text),
        Words(text, is_thought=True),
        Card(text, output=text, paths=(text,)),
        Note(text),
        Plan((PlanStep(text, PlanProgress.OPEN),)),
        Trouble(text, text, (), (text,)),
    ]
    drawn = _OURS.sub("", draw(blocks, Style(width), is_whole=True))

    assert not [c for c in drawn if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160)]
    assert not set(drawn) & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2068\U000e0041")


@pytest.mark.parametrize("width", [40, 80, 200])
def test_nothing_is_wider_than_the_window(width: int) -> None:
    blocks: list[Block] = [Words("word " * 99), Note("note " * 99), TROUBLE, Card("t" * 300)]

    assert max(map(len, draw(blocks, Style(width, is_coloured=False)).splitlines())) <= width


def test_of_a_long_prompt_the_beginning_is_shown() -> None:
    pasted = Prompted("\n".join(["line"] * 1_000))

    drawn = draw([pasted], Style(80, is_coloured=False)).splitlines()
    assert drawn == ["> line", *["  line"] * 7, "  … 4,959 more characters"]
    assert len(draw([pasted], Style(80), is_whole=True).splitlines()) == 1_000
    assert len(draw([Prompted("x" * 1_000_000)], Style(80)).splitlines()) < 40


def test_words_waste_no_lines_and_are_never_too_wide() -> None:
    text = "One\n\n```python\nx = 1\n\ny = 2\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nTwo"

    drawn = draw([Words(text), Words("w " * 300)], Style(200)).splitlines()
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in drawn]
    assert all(line == line.rstrip() for line in plain)
    assert not [1 for one, two in pairwise(plain) if not one and not two]
    assert max(map(len, plain)) <= 120
    assert [line.strip() for line in plain if line][:4] == ["One", "x = 1", "y = 2", "a  b"]


def test_a_line_that_is_too_long_stays_behind_its_bar() -> None:
    card = Card("x", output=f"{'word ' * 30}\n{'y' * 100}\n", is_ok=True)

    assert all(line.startswith("  │ ") for line in draw([card], BARE).splitlines()[1:])
