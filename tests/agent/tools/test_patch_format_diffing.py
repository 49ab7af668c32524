"""A diff is one that `patch` understands, however long the texts are."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from holdfast.agent.tools.patch_format import bounded, diff

TEXTS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=30)


def test_a_change_with_what_is_around_it() -> None:
    before = [str(number) for number in range(1, 21)]
    after = [*before[:9], "x", *before[10:]]

    assert diff("f", before, after).split("\n") == [
        "--- a/f", "+++ b/f", "@@ -7,7 +7,7 @@",
        " 7", " 8", " 9", "-10", "+x", " 11", " 12", " 13",
    ]  # fmt: skip


def test_a_new_file_and_one_that_goes() -> None:
    assert diff("f", None, ["a"]) == "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a"
    assert diff("f", ["a"], None) == "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a"


@pytest.mark.skipif(shutil.which("patch") is None, reason="there is no patch program")
@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@example([*"aaaaaabba"], [*"aabaaabba"], 0)  # the same lines again and again
@given(TEXTS, TEXTS, st.sampled_from([0, 500]))
def test_patch_makes_the_one_of_the_other(
    tmp_path: Path, before: list[str], after: list[str], more: int
) -> None:
    before, after = (
        ["top", *each, *["x"] * more * number, "end"] for number, each in enumerate((before, after))
    )
    file = tmp_path / "f"
    file.write_text("".join(f"{line}\n" for line in before))

    said = diff("f", before, after) + "\n"
    if before != after:
        subprocess.run(["patch", "-s", str(file)], input=said, text=True, check=True)

    assert file.read_text().splitlines() == after


def test_a_text_is_bounded() -> None:
    assert bounded("abc", chars_max=3) == "abc"
    assert bounded("abcd", chars_max=3) == "abc\n… (1 more characters)"
