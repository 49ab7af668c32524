"""Every touched path has its way, and a stage has none."""

from __future__ import annotations

from holdfast.nouns import RelativePath
from holdfast.workbench.diff.tree_changes import TouchedTree, is_stage, touched_tree, with_parents
from holdfast.workbench.model import STAGE_PREFIX, TouchedPaths


def test_names_on_the_way_are_only_passed_through() -> None:
    touched = TouchedPaths(
        frozenset(map(RelativePath.of, ("a/b", "c"))), frozenset(map(RelativePath.of, ("a/d", "c")))
    )

    assert touched_tree(touched) == TouchedTree(
        below={
            b"a": TouchedTree(
                below={
                    b"b": TouchedTree(is_touched=True),
                    b"d": TouchedTree(is_touched=True, is_whole=True),
                }
            ),
            b"c": TouchedTree(is_touched=True, is_whole=True),
        }
    )


def test_a_stage_is_left_out_at_the_top_only() -> None:
    stage = STAGE_PREFIX + "abc"
    touched = TouchedPaths(frozenset(map(RelativePath.of, (stage, f"{stage}/1", f"d/{stage}"))))

    assert list(touched_tree(touched).below) == [b"d"]
    assert is_stage(stage.encode())
    assert not is_stage(b"stage")


def test_every_directory_on_the_way_is_named_once() -> None:
    assert with_parents([]) == frozenset()
    assert with_parents([b"a/b/c", b"a/b/d", b"e", b""]) == {
        b"a",
        b"a/b",
        b"a/b/c",
        b"a/b/d",
        b"e",
        b"",
    }
