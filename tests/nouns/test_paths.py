"""Paths in any bytes stay below their root by spelling, sort as a tree and survive JSON."""

from __future__ import annotations

import json
import pickle
from copy import copy

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from holdfast.nouns import PathInvalid, RelativePath

names = st.binary(min_size=1, max_size=255).filter(
    lambda raw: raw not in {b".", b".."} and not {0, 0x2F} & set(raw)
)
paths = st.lists(names, min_size=1, max_size=6).map(lambda parts: RelativePath(tuple(parts)))


@pytest.mark.parametrize(
    ("spelling", "parts"),
    [
        ("a", (b"a",)),
        ("src/main.py", (b"src", b"main.py")),
        (b"\xff/\n", (b"\xff", b"\n")),
        ("\udcff", (b"\xff",)),
        ("größe", ("größe".encode(),)),
        ("...", (b"...",)),
        ("..a/.b/c..", (b"..a", b".b", b"c..")),
        ("C:\\x", (b"C:\\x",)),
        ("-rf/~/ ", (b"-rf", b"~", b" ")),
        (b"n" * 255, (b"n" * 255,)),
        (b"/".join([b"n" * 255] * 15 + [b"m" * 255]), (b"n" * 255,) * 15 + (b"m" * 255,)),
    ],
)
def test_a_path_is_its_parts(spelling: str | bytes, parts: tuple[bytes, ...]) -> None:
    path = RelativePath.of(spelling)

    assert path == RelativePath(parts)
    assert path.raw == b"/".join(parts)


@pytest.mark.parametrize(
    ("spelling", "reason"),
    [
        ("", "it is empty"),
        ("/", "it is absolute"),
        ("//", "it is absolute"),
        ("/etc/passwd", "it is absolute"),
        ("//server/share", "it is absolute"),
        (".", "a part of it is ."),
        ("..", "a part of it is .."),
        ("./a", "a part of it is ."),
        ("a/./b", "a part of it is ."),
        ("../a", "a part of it is .."),
        ("a/../../b", "a part of it is .."),
        ("a/..", "a part of it is .."),
        ("a//b", "a part of it is empty"),
        ("a/", "a part of it is empty"),
        (b"a\0b", "a name in it contains a NUL or a slash"),
        (b"n" * 256, "a name in it is longer than 255 bytes"),
        (b"/".join([b"n" * 255] * 16) + b"/m", "it is longer than 4095 bytes"),
        ("a/\ud800", "it is not valid Unicode"),
    ],
)
def test_what_cannot_lie_below_a_root_is_refused(spelling: str | bytes, reason: str) -> None:
    with pytest.raises(PathInvalid) as raised:
        RelativePath.of(spelling)

    assert raised.value.reason == reason


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ((), "it is empty"),
        ((b"a/b",), "a name in it contains a NUL or a slash"),
        ((b"a", b".."), "a part of it is .."),
    ],
)
def test_parts_are_checked_as_well(parts: tuple[bytes, ...], reason: str) -> None:
    with pytest.raises(PathInvalid) as raised:
        RelativePath(parts)

    assert raised.value.reason == reason


@pytest.mark.parametrize("text", ["a\\", "\\q", "\\x2e\\x2e", "\\x00", "/a", ""])
def test_a_text_form_hides_nothing(text: str) -> None:
    with pytest.raises(PathInvalid):
        RelativePath.from_text(text)


def test_a_failure_names_the_path_harmlessly() -> None:
    with pytest.raises(PathInvalid) as raised:
        RelativePath.of(b"\x1b]0;hi\x07\xff/..")

    assert raised.value == PathInvalid(path="\\x1b]0;hi\\x07\\xff/..", reason="a part of it is ..")


@given(paths)
def test_every_path_comes_back_from_its_text(path: RelativePath) -> None:
    assert RelativePath.from_text(json.loads(json.dumps(str(path)))) == path
    assert RelativePath.of(path.raw) == path


@given(paths, paths)
def test_a_path_is_known_by_its_parts(path: RelativePath, other: RelativePath) -> None:
    for same in (RelativePath(path.parts), copy(path), pickle.loads(pickle.dumps(path))):
        assert (same, hash(same), type(same)) == (path, hash(path), RelativePath)
    assert (path == other) is (path.parts == other.parts)
    assert (path < other) is (path.parts < other.parts)
    assert repr(path) == f"RelativePath(parts={path.parts!r})"


@given(st.binary(max_size=40) | st.text(max_size=40))
def test_any_spelling_is_taken_or_refused_by_name(spelling: bytes | str) -> None:
    try:
        path = RelativePath.of(spelling)
    except PathInvalid:
        return
    assert b".." not in path.parts
    assert not path.raw.startswith(b"/")


@given(paths, paths)
def test_joining_and_parting_are_inverse(above: RelativePath, below: RelativePath) -> None:
    assume(len(above.raw) + len(below.raw) < 4095)
    joined = above / below

    assert joined == above / below.raw
    assert joined.name == below.name
    assert joined.parent == (above if below.parent is None else above / below.parent)
    assert joined.within(above)
    assert not above.within(joined)


@given(st.lists(paths, max_size=8))
def test_a_directory_is_followed_by_what_is_in_it(some: list[RelativePath]) -> None:
    tree = sorted({path for each in some for path in [each, each.parent] if path is not None})
    for directory in tree:
        inside = [at for at, path in enumerate(tree) if path.within(directory)]
        assert inside == list(range(tree.index(directory), tree.index(directory) + len(inside)))


@pytest.mark.parametrize(
    ("path", "other", "within"),
    [("a", "a", True), ("a/b", "a", True), ("ab", "a", False), ("a", "a/b", False)],
)
def test_within(path: str, other: str, within: bool) -> None:
    assert RelativePath.of(path).within(RelativePath.of(other)) is within


def test_equal_paths_are_one_key() -> None:
    assert {RelativePath.of("a/b"): 1}[RelativePath((b"a", b"b"))] == 1
