"""An edit changes exactly the lines that were read, or nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.agent.failures import EditStale, ToolRefused
from holdfast.agent.tools.documents import (
    Anchor,
    EditOperation,
    LineEdit,
    Span,
    anchor_in,
    around,
    edit_of,
    edited,
    hash_of,
    parsed,
    tagged,
)

TEXT = "one\n  two\nthree\nfour\n"
LINES = TEXT.splitlines()


def at(number: int, text: str | None = None) -> Anchor:
    return Anchor(number, hash_of(LINES[number - 1] if text is None else text))


def edit(first: int, last: int, operation: EditOperation, *lines: str) -> LineEdit:
    return LineEdit(at(first), at(last), operation, lines)


def test_a_line_is_named_by_all_of_it() -> None:
    assert hash_of("two") != hash_of("  two")
    assert tagged(["a", "b"], 7) == [f"7:{hash_of('a')}|a", f"8:{hash_of('b')}|b"]
    assert tagged(["x" * 3000]) == [f"1:{hash_of('x' * 3000)}|{'x' * 2000}… (+1000 characters)"]


@pytest.mark.parametrize("word", ["12:a3f0", " 12:a3f0 ", "12:a3f0|text: with|bars\n"])
def test_an_anchor_is_read_as_it_is_shown(word: str) -> None:
    assert anchor_in(word) == Anchor(12, "a3f0")


@pytest.mark.parametrize("word", ["", "12", "12:a3f", "12:A3F0", "x:a3f0", "12:a3f00"])
def test_what_is_no_anchor_is_refused(word: str) -> None:
    with pytest.raises(ToolRefused):
        anchor_in(word)


@pytest.mark.parametrize(
    ("edits", "expected", "spans"),
    [
        ([edit(2, 2, EditOperation.REPLACE, "x", "y")], "one\nx\ny\nthree\nfour\n", [(1, 3)]),
        ([edit(2, 3, EditOperation.DELETE)], "one\nfour\n", [(1, 1)]),
        ([edit(1, 1, EditOperation.INSERT_BEFORE, "x")], f"x\n{TEXT}", [(0, 1)]),
        ([edit(4, 4, EditOperation.INSERT_AFTER, "x")], f"{TEXT}x\n", [(4, 5)]),
        (
            [
                edit(4, 4, EditOperation.REPLACE, "z"),
                edit(1, 1, EditOperation.INSERT_AFTER, "x"),
                edit(2, 3, EditOperation.DELETE),
            ],
            "one\nx\nz\n",
            [(1, 2), (2, 2), (2, 3)],
        ),
        (
            [
                edit(2, 2, EditOperation.INSERT_AFTER, "x"),
                edit(2, 2, EditOperation.INSERT_AFTER, "y"),
            ],
            "one\n  two\nx\ny\nthree\nfour\n",
            [(2, 3), (3, 4)],
        ),
    ],
)
def test_edits(edits: list[LineEdit], expected: str, spans: list[tuple[int, int]]) -> None:
    made, places = edited("f", parsed(TEXT.encode()), edits)

    assert made.encoded().decode() == expected
    assert places == [Span(*each) for each in spans]


def test_two_edits_of_one_line_are_refused() -> None:
    edits = [edit(1, 3, EditOperation.DELETE), edit(3, 4, EditOperation.REPLACE, "x")]
    with pytest.raises(ToolRefused, match="line 3"):
        edited("f", parsed(TEXT.encode()), edits)


@pytest.mark.parametrize(
    ("stale", "reason"),
    [
        (Anchor(2, hash_of("two")), f"line 2 is not {hash_of('two')} any more"),
        (Anchor(2, hash_of("four")), "such a line is 4 now"),
        (Anchor(9, "0000"), "there is no line 9, it has 4"),
    ],
)
def test_a_stale_edit_is_refused_with_the_lines_of_now(stale: Anchor, reason: str) -> None:
    edits = [edit(1, 1, EditOperation.DELETE), LineEdit(stale, stale, EditOperation.DELETE)]

    with pytest.raises(EditStale) as caught:
        edited("f", parsed(TEXT.encode()), edits)

    assert reason in caught.value.reason
    assert tagged(["three"], 3)[0] in caught.value.now


def test_a_stale_edit_of_an_empty_file_says_that_it_is_empty() -> None:
    with pytest.raises(EditStale, match="empty"):
        edited("f", parsed(b""), [edit(1, 1, EditOperation.DELETE)])


@pytest.mark.parametrize(
    ("start", "through", "operation", "text", "reason"),
    [
        ("2:aaaa", "1:aaaa", "delete", None, "does not follow"),
        ("1:aaaa", "2:aaaa", "insert_after", "x", "takes one line"),
        ("1:aaaa", None, "insert_before", None, "needs the text"),
        ("1:aaaa", None, "delete", "x", "takes no text"),
        ("1:aaaa", None, "replace", None, "needs the text"),
    ],
)
def test_words_that_make_no_edit(
    start: str, through: str | None, operation: str, text: str | None, reason: str
) -> None:
    with pytest.raises(ToolRefused, match=reason):
        edit_of(start, through, operation, text)


def test_lines_around_a_change_are_shown_with_gaps() -> None:
    texts = [str(number) for number in range(1, 31)]

    shown = around(texts, [Span(0, 1), Span(20, 21)], margin=1).split("\n")

    assert [line.partition(":")[0] for line in shown] == ["1", "2", "…", "20", "21", "22"]
    assert around(texts * 20, [Span(0, 600)]).endswith("… and 400 more lines")


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["a", "b", "  a", ""]), min_size=1, max_size=12),
    st.data(),
)
def test_any_edit_leaves_every_other_line_alone(texts: list[str], data: st.DataObject) -> None:
    document = parsed("".join(f"{text}\n" for text in texts).encode())
    first = data.draw(st.integers(1, len(texts)))
    last = data.draw(st.integers(first, len(texts)))
    new = data.draw(st.lists(st.sampled_from(["x", "y"]), max_size=3))
    start, through = (Anchor(n, hash_of(texts[n - 1])) for n in (first, last))

    made, _ = edited("f", document, [LineEdit(start, through, EditOperation.REPLACE, tuple(new))])

    assert made.texts == texts[: first - 1] + new + texts[last:]
