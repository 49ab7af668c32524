"""Any value becomes JSON that every reader accepts, and details come back as they were declared."""

from __future__ import annotations

import json
import math

import msgspec
import pytest
from hypothesis import given, settings

from holdfast.failures import Action, Failure, Kind
from holdfast.failures.wire import clean, detail_types, frozen, rebuilt
from tests.failures.specimens import ANY_VALUE, Specimen


class Sampled(
    Failure,
    code="SPECIMEN_SAMPLED",
    kind=Kind.BROKEN,
    title="Sampled",
    user_message="{share:g} of {total} were taken; take fewer.",
):
    """Details of every type that details may have."""

    share: float
    total: int
    names: tuple[str, ...] = ()
    corner: tuple[int, str] = (0, "")
    action: Action | None = None
    rest: dict[str, object] | bool = True


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (-(2**63), -(2**63)),
        (2**64 - 1, 2**64 - 1),
        (2**64, "0x10000000000000000"),
        (-(2**63) - 1, "-0x8000000000000001"),
        (2.5, 2.5),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
        ("text", "text"),
        ("lone \ud800", "lone \\ud800"),
        ((1, ("a",)), [1, ["a"]]),
        ({1: {"\udfff": math.nan}}, {"1": {"\\udfff": "nan"}}),
        (Action.RETRY, "retry"),
        (ValueError("x"), "x"),
    ],
)
def test_a_value_is_written_so_that_all_can_read_it(value: object, expected: object) -> None:
    assert clean(value) == expected


def test_a_number_has_no_largest_size() -> None:
    assert clean(1 << 40_000) == "0x1" + "0" * 10_000


@settings(deadline=None)
@given(value=ANY_VALUE)
def test_anything_becomes_json_for_every_reader(value: object) -> None:
    written = clean(value)

    assert json.loads(json.dumps(written, allow_nan=False).encode()) == written
    assert msgspec.json.decode(msgspec.json.encode(written)) == written
    assert clean(written) == written


def test_nesting_ends_somewhere() -> None:
    deep: object = "bottom"
    for _ in range(100_000):
        deep = [deep]

    assert str(clean(deep)).count("[") == 33
    assert str(frozen(deep)).count("(") == 33


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        ({"share": 0.5, "total": 7}, Sampled(share=0.5, total=7)),
        ({"share": 1, "total": 7}, Sampled(share=1.0, total=7)),
        ({"share": "inf", "total": "0x10"}, Sampled(share=math.inf, total=16)),
        (
            {"share": 0.5, "total": 7, "names": ("a", "b"), "corner": (1, "x")},
            Sampled(share=0.5, total=7, names=("a", "b"), corner=(1, "x")),
        ),
        (
            {"share": 0.5, "total": 7, "action": "retry", "rest": {"a": (1,)}},
            Sampled(share=0.5, total=7, action=Action.RETRY, rest={"a": (1,)}),
        ),
        ({"share": 0.5, "total": 7, "rest": False}, Sampled(share=0.5, total=7, rest=False)),
        ({"share": 0.5}, None),
        ({"share": 0.5, "total": 7, "colour": "red"}, None),
        ({"share": "half", "total": 7}, None),
        ({"share": True, "total": 7}, None),
        ({"share": 10**400, "total": 7}, None),
        ({"share": 0.5, "total": 7.0}, None),
        ({"share": 0.5, "total": True}, None),
        ({"share": 0.5, "total": "seven"}, None),
        ({"share": 0.5, "total": "0xseven"}, None),
        ({"share": 0.5, "total": 7, "names": "a"}, None),
        ({"share": 0.5, "total": 7, "names": (1,)}, None),
        ({"share": 0.5, "total": 7, "corner": (1,)}, None),
        ({"share": 0.5, "total": 7, "action": "explode"}, None),
        ({"share": 0.5, "total": 7, "rest": "x"}, None),
    ],
)
def test_details_are_read_as_declared_or_not_at_all(
    details: dict[str, object], expected: Failure | None
) -> None:
    assert rebuilt(Sampled, details) == expected


def test_the_details_of_a_class_are_known_with_their_types() -> None:
    assert detail_types(Specimen) == ({"name": str, "count": int}, {"count"})
