"""What a publication does to each path: a table, and trees of any kind."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.nouns import RelativePath
from holdfast.workbench.diff.three_way import (
    ConflictReason,
    PathDecision,
    PathVerdict,
    changes_of,
    chosen_of,
    decide,
    decide_all,
    forced,
    merged_entry,
    require_agreement,
)
from holdfast.workbench.failures import FileReadFailed, PublishedChanged
from holdfast.workbench.model import EntryKind, PathChange, PathEntry
from holdfast.workbench.transaction.machine import TransactionResult, plan_operations, publish
from tests.workbench.modelled import ModelDisk, at, directory, drive, file, link

A, B, C = file("a"), file("b"), file("c")
FIFO = PathEntry(EntryKind.SPECIAL, 0o600)
NOTHING, KEEP, APPLY, MERGE = (
    PathDecision(verdict)
    for verdict in (
        PathVerdict.NOTHING,
        PathVerdict.KEEP_THEIRS,
        PathVerdict.APPLY,
        PathVerdict.MERGE,
    )
)


def conflict(reason: ConflictReason) -> PathDecision:
    return PathDecision(PathVerdict.CONFLICT, reason)


@pytest.mark.promise("W5")
@pytest.mark.parametrize(
    ("base", "theirs", "ours", "expected"),
    [
        (A, A, A, NOTHING),
        (A, A, B, APPLY),
        (A, A, None, APPLY),
        (None, None, B, APPLY),
        (A, B, A, KEEP),
        (A, None, A, KEEP),
        (None, B, None, KEEP),
        (A, B, B, NOTHING),
        (A, None, None, NOTHING),
        (None, B, B, NOTHING),
        (A, B, C, MERGE),
        (A, file("b", 0o755), C, MERGE),
        (A, file("a", 0o755), B, MERGE),
        (A, file("b", 0o755), file("c", 0o600), conflict(ConflictReason.BOTH_CHANGED)),
        (None, B, C, conflict(ConflictReason.BOTH_CREATED)),
        (A, None, B, conflict(ConflictReason.DELETED_THERE)),
        (A, B, None, conflict(ConflictReason.DELETED_HERE)),
        (A, link("b"), C, conflict(ConflictReason.BOTH_CHANGED)),
        (link("a"), link("b"), link("c"), conflict(ConflictReason.BOTH_CHANGED)),
        (A, directory(), B, conflict(ConflictReason.BOTH_CHANGED)),
        (FIFO, FIFO, None, conflict(ConflictReason.NOT_COVERED)),
        (FIFO, FIFO, A, conflict(ConflictReason.NOT_COVERED)),
        (None, None, FIFO, conflict(ConflictReason.NOT_COVERED)),
        (None, FIFO, None, KEEP),
    ],
)
def test_one_path(
    base: PathEntry | None, theirs: PathEntry | None, ours: PathEntry | None, expected: PathDecision
) -> None:
    assert decide(base, theirs, ours) == expected


def test_a_merge_takes_whichever_mode_is_new() -> None:
    runnable = replace(B, mode=0o755)

    assert merged_entry(A, runnable, C, b"merged", 6) == file("merged", 0o755)
    assert merged_entry(A, B, replace(C, mode=0o600), b"merged", 6) == file("merged", 0o600)


DIRECTORY = {at("d"): directory()}


@pytest.mark.parametrize(
    ("base", "theirs", "ours", "expected"),
    [
        (  # we delete a directory, they put something in it
            {**DIRECTORY, at("d/x"): A},
            {**DIRECTORY, at("d/x"): A, at("d/new"): B},
            {},
            {at("d"): conflict(ConflictReason.IN_THE_WAY), at("d/x"): APPLY, at("d/new"): KEEP},
        ),
        (  # they make a file of it, we put something in it
            {**DIRECTORY},
            {at("d"): B},
            {**DIRECTORY, at("d/x"): A},
            {at("d"): KEEP, at("d/x"): conflict(ConflictReason.IN_THE_WAY)},
        ),
        (  # they delete it, we put something in it
            {**DIRECTORY},
            {},
            {**DIRECTORY, at("d/x"): A},
            {at("d"): KEEP, at("d/x"): conflict(ConflictReason.IN_THE_WAY)},
        ),
        (  # they delete it, we put a directory in it, and something into that
            {**DIRECTORY},
            {},
            {**DIRECTORY, at("d/e"): directory(), at("d/e/x"): A},
            {
                at("d"): KEEP,
                at("d/e"): conflict(ConflictReason.IN_THE_WAY),
                at("d/e/x"): conflict(ConflictReason.IN_THE_WAY),
            },
        ),
        (
            {at(".git"): directory(), at(".git/index"): A},
            {at(".git"): directory(), at(".git/index"): B},
            {at(".git"): directory(), at(".git/index"): C, at(".gitignore"): A},
            {at(".git/index"): PathDecision(PathVerdict.WITHHELD), at(".gitignore"): APPLY},
        ),
    ],
)
def test_paths_depend_on_each_other(
    base: dict[RelativePath, PathEntry],
    theirs: dict[RelativePath, PathEntry],
    ours: dict[RelativePath, PathEntry],
    expected: dict[RelativePath, PathDecision],
) -> None:
    assert decide_all(base, theirs, ours) == expected


def test_a_repository_is_published_when_it_is_asked_for() -> None:
    base = {at(".git"): directory(), at(".git/index"): A}
    ours = {**base, at(".git/index"): B}

    decisions = decide_all(base, base, ours, publishes_repository=True)

    assert decisions == {at(".git/index"): APPLY}


@pytest.mark.promise("W9")
def test_what_is_not_covered_is_never_replaced_nor_removed_with_its_directory() -> None:
    base = {**DIRECTORY, at("d/x"): A, at("f"): A}
    uncovered = [at("d/secret"), at("f")]

    decisions = decide_all(base, base, {at("f"): B}, uncovered=uncovered)

    refused = conflict(ConflictReason.NOT_COVERED)
    assert decisions == {at("d"): refused, at("d/x"): APPLY, at("f"): refused}
    assert forced(decisions, [at("f")], base, {at("f"): B}, uncovered=uncovered) == decisions
    with pytest.raises(FileReadFailed) as failed:
        require_agreement(decisions)
    assert failed.value == FileReadFailed(paths=("d", "f"))


@pytest.mark.promise("W5")
def test_force_is_for_each_file_and_goes_over_what_is_there_now() -> None:
    base, theirs, ours = ({at("x"): one, at("y"): one} for one in (A, B, C))
    decisions = forced(decide_all(base, theirs, ours), [at("x"), at("unknown")], theirs, ours)

    assert decisions == {at("x"): APPLY, at("y"): MERGE}
    assert changes_of(decisions, theirs, ours) == (PathChange(at("x"), B, C),)


@pytest.mark.promise("W5")
def test_every_path_that_somebody_must_decide_about_is_named() -> None:
    base = {at("x"): A, at("y"): A, at("z"): A}
    theirs, ours = {at("x"): B, at("z"): A}, {at("x"): C, at("y"): C, at("z"): B}
    decisions = decide_all(base, theirs, ours)

    with pytest.raises(PublishedChanged) as refused:
        require_agreement(decisions)
    assert refused.value == PublishedChanged(paths=("x", "y"))
    with pytest.raises(PublishedChanged):
        require_agreement(chosen_of(decisions, ours, {at("y")}))
    require_agreement(chosen_of(decisions, ours, {at("z")}))
    require_agreement(forced(decisions, [at("x"), at("y")], theirs, ours))


@pytest.mark.promise("W5")
def test_a_forced_file_brings_the_directory_that_they_removed() -> None:
    base = {**DIRECTORY, at("d/x"): A}
    ours = {**DIRECTORY, at("d/x"): B, at("d/new"): C}
    decisions = decide_all(base, {}, ours)
    assert decisions[at("d/x")] == conflict(ConflictReason.DELETED_THERE)

    now = forced(decisions, [at("d/x")], {}, ours)

    assert now == {
        at("d"): APPLY,
        at("d/x"): APPLY,
        at("d/new"): conflict(ConflictReason.IN_THE_WAY),
    }
    assert changes_of(now, {}, ours) == (
        PathChange(at("d"), None, directory()),
        PathChange(at("d/x"), None, B),
    )


@pytest.mark.promise("W5")
def test_force_does_not_remove_what_they_put_into_a_directory() -> None:
    base, ours = {at("d"): A}, {at("d"): B}
    theirs = {**DIRECTORY, at("d/x"): C}

    decisions = forced(decide_all(base, theirs, ours), [at("d")], theirs, ours)

    assert decisions[at("d")] == conflict(ConflictReason.IN_THE_WAY)


def test_a_chosen_path_brings_the_directories_that_it_needs_and_nothing_else() -> None:
    ours = {**DIRECTORY, at("d/x"): A, at("d/y"): B, at("e"): C}
    decisions = decide_all({}, {}, ours)

    chosen = changes_of(chosen_of(decisions, ours, {at("d/x")}), {}, ours)

    assert chosen == (PathChange(at("d"), None, directory()), PathChange(at("d/x"), None, A))


PATHS = [at(name) for name in ("a", "b", "d", "d/x", "d/y")]


@st.composite
def trees(draw: st.DrawFn) -> dict[RelativePath, PathEntry]:
    tree: dict[RelativePath, PathEntry] = {}
    for path in PATHS:
        parent = path.parent
        if parent is not None and not (parent in tree and tree[parent].is_directory):
            continue
        wanted = [None, A, B, link("a"), *([directory()] * 3 if path.raw == b"d" else [])]
        entry = draw(st.sampled_from(wanted))
        if entry is not None:
            tree[path] = entry
    return tree


@settings(deadline=None)
@given(trees(), trees(), trees())
def test_without_a_conflict_both_sides_have_what_they_changed(
    base: dict[RelativePath, PathEntry],
    theirs: dict[RelativePath, PathEntry],
    ours: dict[RelativePath, PathEntry],
) -> None:
    decisions = decide_all(base, theirs, ours)
    if {PathVerdict.MERGE, PathVerdict.CONFLICT} & {found.verdict for found in decisions.values()}:
        return
    disk = ModelDisk.of(theirs, plan_operations(changes_of(decisions, theirs, ours)))

    assert drive(publish(disk.operations, "key"), disk).result is TransactionResult.FINISHED
    for path in PATHS:
        expected = theirs.get(path) if ours.get(path) == base.get(path) else ours.get(path)
        assert disk.look(path) == expected


@given(trees(), trees())
def test_in_a_project_that_nobody_touched_everything_is_applied(
    base: dict[RelativePath, PathEntry], ours: dict[RelativePath, PathEntry]
) -> None:
    decisions = decide_all(base, base, ours)

    assert set(decisions.values()) <= {APPLY}
    assert {path for path in PATHS if base.get(path) != ours.get(path)} == decisions.keys()
