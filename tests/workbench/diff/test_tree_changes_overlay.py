"""Where a draft may differ follows from what its layer holds, and from nothing else."""

from __future__ import annotations

import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.nouns import RelativePath
from holdfast.workbench.coverage import DEPTH_MAX
from holdfast.workbench.diff.tree_changes import LayerEntry, OverlayLayer, nearest, touched
from holdfast.workbench.model import STAGE_PREFIX, TouchedPaths

FILE, DIRECTORY, LINK = stat.S_IFREG | 0o644, stat.S_IFDIR | 0o755, stat.S_IFLNK | 0o777
WHITEOUT = stat.S_IFCHR
STAGE = STAGE_PREFIX.encode() + b"0123456789abcdef"
DEEP = b"/".join([b"d"] * DEPTH_MAX)
LONG = b"/".join([b"x" * 250] * 16)  # with another such name it is too long for a path


def paths(*raw: bytes) -> frozenset[RelativePath]:
    return frozenset(map(RelativePath.of, raw))


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ([], TouchedPaths()),
        ([LayerEntry(b"f", FILE)], TouchedPaths(paths(b"f"))),
        ([LayerEntry(b"f", LINK)], TouchedPaths(paths(b"f"))),
        ([LayerEntry(b"gone", WHITEOUT)], TouchedPaths(paths(b"gone"))),
        ([LayerEntry(b"fifo", stat.S_IFIFO | 0o600)], TouchedPaths(paths(b"fifo"))),
        (
            [LayerEntry(b"d", DIRECTORY), LayerEntry(b"d/f", FILE), LayerEntry(b"d/\xff\n", FILE)],
            TouchedPaths(paths(b"d", b"d/f", b"d/\xff\n")),
        ),
        ([LayerEntry(b"d", DIRECTORY, is_opaque=True)], TouchedPaths(whole=paths(b"d"))),
        ([LayerEntry(b"d", DIRECTORY, is_closed=True)], TouchedPaths(whole=paths(b"d"))),
        (
            [
                LayerEntry(b"d/e/f", FILE),
                LayerEntry(b"d/e", DIRECTORY, is_opaque=True),
                LayerEntry(b"d", DIRECTORY, is_opaque=True),
                LayerEntry(b"dd", FILE),
            ],
            TouchedPaths(paths(b"dd"), paths(b"d")),
        ),
        ([LayerEntry(STAGE, DIRECTORY), LayerEntry(STAGE + b"/0", FILE)], TouchedPaths()),
        ([LayerEntry(b"d/" + STAGE, FILE)], TouchedPaths(paths(b"d/" + STAGE))),
        ([LayerEntry(DEEP, DIRECTORY)], TouchedPaths(whole=paths(DEEP))),
        ([LayerEntry(DEEP, FILE)], TouchedPaths(paths(DEEP))),
        ([LayerEntry(LONG + b"/" + b"y" * 250, FILE)], TouchedPaths(whole=paths(LONG))),
    ],
)
def test_what_a_layer_holds_is_where_to_look(
    listed: list[LayerEntry], expected: TouchedPaths
) -> None:
    assert touched(listed) == expected
    assert touched(reversed(listed)) == expected


NAMES = st.lists(st.sampled_from([b"a", b"b", b"c"]), min_size=1, max_size=4).map(b"/".join)
LISTED = st.builds(
    LayerEntry,
    NAMES,
    st.sampled_from([FILE, DIRECTORY, WHITEOUT]),
    st.booleans(),
    st.booleans(),
)


@given(st.lists(LISTED, unique_by=lambda each: each.path))
def test_everything_listed_is_looked_at_exactly_once(listed: list[LayerEntry]) -> None:
    found = touched(listed)

    for each in listed:
        path = RelativePath.of(each.path)
        assert (path in found.paths) + any(path.within(whole) for whole in found.whole) == 1
    assert found.paths | found.whole <= {RelativePath.of(each.path) for each in listed}


def test_what_is_too_long_for_a_path_is_named_by_what_it_is_in() -> None:
    assert nearest(b"a/b") == RelativePath.of(b"a/b")
    assert nearest(LONG + b"/" + b"y" * 250 + b"/" + b"z" * 250) == RelativePath.of(LONG)


def test_a_layer_decides_where_it_has_something_or_hides_the_project() -> None:
    layer = OverlayLayer(
        [
            LayerEntry(b"d", DIRECTORY),
            LayerEntry(b"d/f", FILE),
            LayerEntry(b"d/own", DIRECTORY, is_opaque=True),
            LayerEntry(b"d/own/e", DIRECTORY),
            LayerEntry(b"gone", WHITEOUT),
        ]
    )

    decided = {
        raw: (layer.decides(path), layer.hides(path), layer.is_merged(path))
        for raw in (b"d", b"d/f", b"d/g", b"d/own", b"d/own/e", b"d/own/x", b"gone/x", b"other")
        for path in [RelativePath.of(raw)]
    }

    assert decided == {
        b"d": (True, False, True),
        b"d/f": (True, True, False),
        b"d/g": (False, False, False),
        b"d/own": (True, True, False),
        b"d/own/e": (True, True, False),
        b"d/own/x": (True, True, False),
        b"gone/x": (True, True, False),
        b"other": (False, False, False),
    }
