"""What goes together is merged into the draft, and nothing else is."""

from __future__ import annotations

import os

import pytest

from holdfast.workbench import review
from holdfast.workbench.operations.draft_state import draft_state
from holdfast.workbench.operations.project_merge import merge_into_draft, merges_of
from holdfast.workbench.operations.recovery import opened
from tests.workbench.benches import LINES, Bench, at


@pytest.mark.promise("W5")
@pytest.mark.parametrize(
    ("script", "theirs", "merged"),
    [
        ("sed -i s/9/nine/ a", LINES.replace(b"1", b"one"), b"one\n2\n3\n4\n5\n6\n7\n8\nnine\n"),
        ("sed -i s/9/nine/ a", LINES.replace(b"8", b"eight"), None),
        ("printf '\\0' >> a", LINES.replace(b"1", b"one"), None),
        ("sed -i s/9/nine/ a", b"\0" + LINES, None),
    ],
)
def test_which_texts_go_together(
    bench: Bench, script: str, theirs: bytes, merged: bytes | None
) -> None:
    bench.draft()
    bench.run(script)
    (bench.project / "a").write_bytes(theirs)

    with bench.workbench.locked() as (handle, _):
        draft = handle.drafts.find()
        with opened(handle, draft) as view:
            standing = draft_state(handle, view, draft)
        found = merges_of(handle.store, standing, standing.decided())

    assert found.merged == ({} if merged is None else {at("a"): merged})
    assert found.clashes == ({at("a")} if merged is None else frozenset())


@pytest.mark.promise("W5")
def test_a_merged_file_has_whichever_mode_is_new_and_is_no_merge_any_more(bench: Bench) -> None:
    bench.draft()
    bench.run("sed -i s/9/nine/ a")
    (bench.project / "a").write_bytes(LINES.replace(b"1", b"one"))
    os.chmod(bench.project / "a", 0o755)

    with bench.workbench.locked() as (handle, _):
        draft = handle.drafts.find()
        with opened(handle, draft) as view:
            standing = draft_state(handle, view, draft)
            merged, _ = merges_of(handle.store, standing, standing.decided())
            merge_into_draft(handle, view, standing, merged)

    assert bench.run("head -1 a; tail -1 a; stat -c %a a") == "one\nnine\n755\n"
    seen = review(bench.workbench)
    assert (seen.merges, seen.conflicts) == ((), ())
