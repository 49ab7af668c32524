"""How protected names are kept."""

from __future__ import annotations

import pytest

from holdfast.confine.failures import SandboxRequestUnfit
from holdfast.confine.policy import (
    ABSENT,
    PathInfo,
    PathType,
    ProtectedPath,
    Protection,
    bare_names,
    candidates,
    nested_names,
    placeholder_content,
    protected_paths,
)

NAMES = (".git/hooks", ".git/config", ".codex")
DIRECTORY, FILE, LINK = (
    PathInfo(PathType.DIRECTORY),
    PathInfo(PathType.FILE),
    PathInfo(PathType.LINK),
)
PINNED, KEPT, EMPTY = Protection.PINNED, Protection.READ_ONLY, Protection.ABSENT


def test_every_directory_on_the_way_is_looked_at() -> None:
    assert candidates("/w", NAMES) == ("/w/.git", "/w/.git/hooks", "/w/.git/config", "/w/.codex")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({}, {"/w/.git": EMPTY, "/w/.codex": EMPTY}),
        ({"/w/.git": FILE}, {"/w/.git": KEPT, "/w/.codex": EMPTY}),
        (
            {"/w/.git": DIRECTORY, "/w/.codex": DIRECTORY},
            {
                "/w/.git": PINNED,
                "/w/.git/hooks": EMPTY,
                "/w/.git/config": EMPTY,
                "/w/.codex": KEPT,
            },
        ),
        (
            {"/w/.git": DIRECTORY, "/w/.git/hooks": DIRECTORY, "/w/.git/config": FILE},
            {
                "/w/.git": PINNED,
                "/w/.git/hooks": KEPT,
                "/w/.git/config": KEPT,
                "/w/.codex": EMPTY,
            },
        ),
    ],
)
def test_guards(found: dict[str, PathInfo], expected: dict[str, Protection]) -> None:
    assert protected_paths("/w", NAMES, found) == tuple(
        ProtectedPath(p, expected[p]) for p in sorted(expected)
    )


def test_further_down_git_is_kept_and_others_only_where_they_are() -> None:
    names = (".git/hooks", ".git/modules", ".codex", ".envrc")
    found = {"/w/a/.git": DIRECTORY, "/w/a/.envrc": FILE}
    assert nested_names("/w", names, "a", found) == ("a/.git/hooks", "a/.envrc")


def test_a_name_that_is_protected_whole_stays_so_whatever_is_protected_in_it() -> None:
    found = {"/w/.git": DIRECTORY, "/w/.git/hooks": DIRECTORY}
    for names in ((".git", ".git/hooks"), (".git/hooks", ".git")):
        assert ProtectedPath("/w/.git", KEPT) in protected_paths("/w", names, found)


@pytest.mark.parametrize(
    "found",
    [
        {"/w/.git": LINK},
        {"/w/.codex": LINK},
        {"/w/.git": DIRECTORY, "/w/.git/hooks": LINK},
        {"/w/.git": DIRECTORY, "/w/.git/config": PathInfo(PathType.FILE, names=2)},
    ],
)
def test_what_cannot_be_kept_is_refused(found: dict[str, PathInfo]) -> None:
    with pytest.raises(SandboxRequestUnfit):
        protected_paths("/w", NAMES, found)


def test_what_stands_in_means_to_git_that_nothing_is_there() -> None:
    paths = ("/w/.git/commondir", "/w/.git/config", "/w/.git/hooks", "/w/.envrc", "/w/.git")
    assert [placeholder_content(path) for path in paths] == [b".\n", b"", None, None, None]
    assert PathInfo(PathType.ABSENT) == ABSENT


@pytest.mark.parametrize(
    ("found", "is_below", "expected"),
    [
        ({}, False, ("HEAD",)),
        ({}, True, ("objects",)),
        ({".git": DIRECTORY}, False, ("HEAD",)),  # empty: git does not see it
        ({".git": DIRECTORY, ".git/HEAD": FILE}, False, ()),
        ({".git": FILE}, True, ()),
        ({"HEAD": FILE}, False, ("objects",)),
        ({"objects": DIRECTORY}, True, ("refs",)),
        ({"objects": FILE}, True, ("objects",)),
        ({"objects": DIRECTORY, "refs": DIRECTORY}, True, ("HEAD",)),
        (
            {"HEAD": FILE, "objects": DIRECTORY, "refs": DIRECTORY, "config": FILE},
            False,
            ("HEAD", "config"),
        ),
    ],
)
def test_no_directory_becomes_a_bare_repository(
    found: dict[str, PathInfo], is_below: bool, expected: tuple[str, ...]
) -> None:
    assert bare_names(found, is_below_repository=is_below) == expected


def test_a_file_stands_in_for_what_git_wants_as_a_directory() -> None:
    assert (
        placeholder_content("/w/HEAD")
        == placeholder_content("/w/refs")
        == placeholder_content("/w/objects")
        == b""
    )
    assert placeholder_content("/w/.githooks") is None
