"""What was left out of a result is read back page by page."""

from __future__ import annotations

import pytest

from holdfast.agent.memory import MemoryToolContext
from holdfast.agent.tools.recall import RecallTool

pytestmark = pytest.mark.anyio
RESULTS = {"c1": "a" * 12_000 + "b" * 12_000 + "c"}


@pytest.mark.parametrize(
    ("arguments", "head", "letters"),
    [
        ({"call": "c1"}, "0 to 12000 of 24001; the next page is at offset 12000", "a"),
        ({"call": "c1", "offset": 12_000}, "12000 to 24000 of 24001", "b"),
        ({"call": "c1", "offset": 24_000}, "24000 to 24001 of 24001]", "c"),
        ({"call": "c1", "offset": 99_999}, "24001 to 24001 of 24001]", ""),
        ({"call": "c1", "offset": -5}, "0 to 12000", "a"),
    ],
)
async def test_each_page_says_where_the_next_one_begins(
    arguments: dict[str, object], head: str, letters: str
) -> None:
    done = await RecallTool(RESULTS.get).use(arguments, MemoryToolContext())

    first, _, page = done.text.partition("\n")
    assert (head in first, set(page), done.is_error) == (True, set(letters), False)


async def test_what_never_was_is_an_error() -> None:
    recall = RecallTool(RESULTS.get)

    assert (await recall.use({"call": "c2"}, MemoryToolContext())).is_error
    assert recall.title({"call": "c2"}) == "Read on in the result of c2"
