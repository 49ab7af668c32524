"""A batch fits as a whole or is refused as a whole, and is checked again when it is retried."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.nouns import RelativePath
from holdfast.workbench.failures import BatchRefused, BatchStale
from holdfast.workbench.model import EntryKind, PathChange, PathEntry
from holdfast.workbench.operations.batch_plan import (
    BatchRetry,
    BatchStep,
    Chmod,
    Create,
    DeletePath,
    Rename,
    Update,
    changes_of,
    check_retry,
)
from holdfast.workbench.transaction.machine import TransactionResult, plan_operations, publish
from tests.workbench.modelled import ModelDisk, at, directory, drive, file, link

A, B = file("a"), file("b")
DRAFT = {
    at("a"): A,
    at("l"): link("a"),
    at("d"): directory(),
    at("d/x"): B,
    at("pipe"): PathEntry(EntryKind.SPECIAL, 0o600),
}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([Create(at("n"), B)], [PathChange(at("n"), None, B)]),
        (
            [Create(at("n/m/x"), B)],
            [
                PathChange(at("n"), None, directory()),
                PathChange(at("n/m"), None, directory()),
                PathChange(at("n/m/x"), None, B),
            ],
        ),
        ([Update(at("a"), b"b", 1)], [PathChange(at("a"), A, B)]),
        ([Update(at("a"), b"b", 1, expected=b"a")], [PathChange(at("a"), A, B)]),
        (
            [DeletePath(at("d/x")), DeletePath(at("d"))],
            [PathChange(at("d"), directory(), None), PathChange(at("d/x"), B, None)],
        ),
        ([Chmod(at("a"), 0o755)], [PathChange(at("a"), A, file("a", 0o755))]),
        ([Rename(at("a"), at("z"))], [PathChange(at("a"), A, None), PathChange(at("z"), None, A)]),
        (
            [Rename(at("d"), at("e"))],
            [
                PathChange(at("d"), directory(), None),
                PathChange(at("d/x"), B, None),
                PathChange(at("e"), None, directory()),
                PathChange(at("e/x"), None, B),
            ],
        ),
        ([Create(at("n"), B), DeletePath(at("n"))], []),
        (
            [Create(at("n"), B), Rename(at("n"), at("m")), Update(at("m"), b"a", 1)],
            [PathChange(at("m"), None, A)],
        ),
        (
            [DeletePath(at("a")), Rename(at("d/x"), at("a"))],
            [PathChange(at("a"), A, B), PathChange(at("d/x"), B, None)],
        ),
    ],
)
def test_what_a_batch_does(steps: list[BatchStep], expected: list[PathChange]) -> None:
    assert list(changes_of(steps, DRAFT)) == expected


@pytest.mark.promise("W2")
@pytest.mark.parametrize(
    ("steps", "reasons"),
    [
        ([], ["it is empty"]),
        ([Create(at("a"), B)], ["change 1 (a): something is there already"]),
        ([Create(at("a/b"), B)], ["change 1 (a/b): a is not a directory"]),
        (
            [Create(at("n"), PathEntry(EntryKind.SPECIAL, 0))],
            ["change 1 (n): only files, links and directories"],
        ),
        ([Update(at("n"), b"", 0)], ["change 1 (n): nothing is there"]),
        ([Update(at("d"), b"", 0)], ["change 1 (d): it is not a file"]),
        ([Update(at("a"), b"b", 1, expected=b"z")], ["change 1 (a): it is not as expected"]),
        ([DeletePath(at("d"))], ["change 1 (d): the directory is not empty"]),
        ([DeletePath(at("pipe"))], ["change 1 (pipe): it is not a file, link or directory"]),
        ([Rename(at("d"), at("d/y/z"))], ["change 1 (d): it cannot be moved into itself"]),
        ([Rename(at("a"), at("l"))], ["change 1 (a): something is there already"]),
        ([Chmod(at("l"), 0o600)], ["change 1 (l): a link has no mode"]),
        ([Chmod(at("a"), 0o10000)], ["change 1 (a): the mode is not valid"]),
        (
            [DeletePath(at("a")), DeletePath(at("a")), Create(at("n"), B), DeletePath(at("m"))],
            ["change 2 (a): nothing is there", "change 4 (m): nothing is there"],
        ),
    ],
)
def test_every_reason_is_named_and_nothing_is_done(
    steps: list[BatchStep], reasons: list[str]
) -> None:
    with pytest.raises(BatchRefused) as refused:
        changes_of(steps, DRAFT)

    assert refused.value == BatchRefused(reasons=tuple(reasons))


@pytest.mark.promise("W2")
def test_a_retried_batch_is_checked_again() -> None:
    changes = [PathChange(at("a"), A, B), PathChange(at("n"), None, A)]

    assert check_retry(changes, DRAFT) is BatchRetry.APPLY
    assert check_retry(changes, {at("a"): B, at("n"): A}) is BatchRetry.DONE
    with pytest.raises(BatchStale) as stale:
        check_retry(changes, {at("a"): file("person"), at("n"): A})
    assert stale.value == BatchStale(paths=("a", "n"))


PATHS = [at(name) for name in ("a", "b", "d", "d/x", "d/y", "e", "e/z")]
anywhere = st.sampled_from(PATHS)
steps_of_all_kinds = st.one_of(
    st.builds(Create, anywhere, st.sampled_from([A, B, link("a"), directory()])),
    st.builds(Update, anywhere, st.sampled_from([b"a", b"b"]), st.just(1)),
    st.builds(DeletePath, anywhere),
    st.builds(Rename, anywhere, anywhere),
    st.builds(Chmod, anywhere, st.sampled_from([0o600, 0o700, 0o500])),
)


@pytest.mark.promise("W2")
@settings(deadline=None)
@given(st.lists(steps_of_all_kinds, min_size=1, max_size=6))
def test_what_is_accepted_can_be_carried_out_and_is_known_again(steps: list[BatchStep]) -> None:
    draft: dict[RelativePath, PathEntry] = {at("a"): A, at("d"): directory(), at("d/x"): B}
    try:
        changes = changes_of(steps, draft)
    except BatchRefused:
        return
    disk = ModelDisk.of(draft, plan_operations(changes))

    assert drive(publish(disk.operations, "key"), disk).result is TransactionResult.FINISHED
    after = {change.path: change.after for change in changes}
    expected = {**draft, **after}
    assert disk.tree == {path: entry for path, entry in expected.items() if entry is not None}
    assert check_retry(changes, draft) is BatchRetry.APPLY
    assert check_retry(changes, disk.tree) is (BatchRetry.DONE if changes else BatchRetry.APPLY)
