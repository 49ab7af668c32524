"""A model's words for a file lead to it, or to a refusal, and never out of the project."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.agent.failures import ToolRefused
from holdfast.agent.tools.paths import named, place_of
from holdfast.nouns import RelativePath

ROOT = "/home/me/project"


@pytest.mark.parametrize(
    ("word", "path"),
    [
        ("a", b"a"),
        ("./a//b/../c", b"a/c"),
        (f"{ROOT}/a", b"a"),
        (f"{ROOT}/../project/a", b"a"),
        ("-x", b"-x"),
        ("$(x)", b"$(x)"),
        ("a\\x0ab", b"a\nb"),
        ("a\\\\b", b"a\\b"),
        ("a\\b", b"a\\b"),
        ("a/", b"a"),
    ],
)
def test_a_file_of_the_project(word: str, path: bytes) -> None:
    assert named(word, ROOT) == RelativePath.of(path)


@pytest.mark.parametrize("word", ["", ".", "./", ROOT, f"{ROOT}/a/.."])
def test_the_project_itself(word: str) -> None:
    assert place_of(word, ROOT) is None
    with pytest.raises(ToolRefused):
        named(word, ROOT)


@pytest.mark.promise("C8")
@pytest.mark.parametrize(
    "word", ["..", "../x", "a/../../x", "/", "/etc/passwd", f"{ROOT}x/a", f"{ROOT}/../x", "a\0b"]
)
def test_what_leads_out_is_refused(word: str) -> None:
    with pytest.raises(ToolRefused):
        place_of(word, ROOT)


@settings(deadline=None)
@given(st.text())
def test_any_word_is_a_place_or_refused(word: str) -> None:
    try:
        found = place_of(word, ROOT)
    except ToolRefused:
        return
    assert found is None or b".." not in found.parts


@settings(deadline=None)
@given(
    st.lists(
        st.binary(min_size=1, max_size=8).filter(
            lambda name: not {0, ord("/")} & set(name) and name not in (b".", b"..")
        ),
        min_size=1,
        max_size=3,
    )
)
def test_every_path_is_found_by_how_it_is_shown(parts: list[bytes]) -> None:
    path = RelativePath(tuple(parts))
    assert named(str(path), ROOT) == path
