"""Pages are whole by themselves, and nothing in them is obeyed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.nouns import html_failure, html_page, html_table

WIRE: dict[str, object] = {
    "code": "HOST_CRASHED",
    "title": "The agent crashed",
    "userMessage": "It lost <its> turn.",
    "phase": "turn",
    "provider": None,
    "model": "m-1",
    "timestamp": "2026-01-01T00:00:00Z",
    "actions": ["retry", "review_draft"],
}


def test_a_page_loads_nothing_and_holds_its_parts() -> None:
    page = html_page("a <b>", ["<p>one</p>", "<p>two</p>"])

    assert page.startswith("<!doctype html>")
    assert "<title>a &lt;b&gt;</title>" in page
    assert "<h1>a &lt;b&gt;</h1>\n<p>one</p>\n<p>two</p>\n</main>" in page
    assert "default-src 'none'" in page
    assert not any(each in page for each in ("<script", "http://", "https://", "url("))


@pytest.mark.parametrize(
    ("head", "table"),
    [
        ((), '<table>\n<tr><th scope="row">a</th><td>b</td></tr>\n</table>'),
        (
            ("x", "y"),
            '<table>\n<tr><th scope="col">x</th><th scope="col">y</th></tr>\n'
            "<tr><td>a</td><td>b</td></tr>\n</table>",
        ),
    ],
)
def test_a_table_has_a_head_or_its_first_column_is_one(head: tuple[str, ...], table: str) -> None:
    assert html_table([("a", "b")], head=head) == table


@pytest.mark.promise("S1")
def test_a_failure_says_what_to_do_first_and_folds_its_details() -> None:
    told, _, details = html_failure(WIRE).partition("<details>")

    assert told.index("The agent crashed") < told.index("It lost &lt;its&gt; turn.")
    assert "What you can do: retry, or review draft." in told
    assert "HOST_CRASHED" not in told
    for each in ("HOST_CRASHED", "turn", "m-1", "2026-01-01T00:00:00Z"):
        assert f"<code>{each}</code>" in details
    assert "provider" not in details


@given(st.text(), st.text())
def test_whatever_a_failure_says_is_only_text(title: str, action: str) -> None:
    hostile = f"<script>{title}</script>"
    page = html_failure({"title": hostile, "code": hostile, "actions": [hostile, action]})

    assert "<script" not in page
    assert page.count("<details>") == 1
