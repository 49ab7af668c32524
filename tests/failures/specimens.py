"""Make any failure of the catalogue, with details of the types that its class declares."""

from __future__ import annotations

from enum import Enum
from types import NoneType, UnionType
from typing import Union, get_args, get_origin

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from holdfast.failures import Action, Failure, ForeignFailure, Ids, Kind, Recovery, type_of
from holdfast.failures.wire import detail_types

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple) | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=8,
)
PLAIN: dict[object, SearchStrategy[object]] = {
    str: st.text(),
    int: st.integers(),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    NoneType: st.none(),
    object: JSON,
}
ANY_TEXT = st.text(st.characters(exclude_categories=()))  # lone surrogates too
ANY_VALUE = st.recursive(
    SCALARS | st.floats() | st.integers() | ANY_TEXT | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


def values(declared: object) -> SearchStrategy[object]:
    """Values of one declared type; a type that details may not have is an error."""
    origin, inside = get_origin(declared), get_args(declared)
    if origin in {Union, UnionType}:
        return st.one_of([values(choice) for choice in inside])
    if origin is tuple and len(inside) == 2 and inside[1] is ...:
        return st.lists(values(inside[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*[values(choice) for choice in inside])
    if origin is dict and inside[0] is str:
        return st.dictionaries(st.text(), values(inside[1]), max_size=3)
    if isinstance(declared, type) and issubclass(declared, Enum):
        return st.sampled_from(declared)
    if declared not in PLAIN:
        raise TypeError(f"a fact may not be {declared}: it has no JSON form that reads back")
    return PLAIN[declared]


def bare(known: type[Failure]) -> SearchStrategy[Failure]:
    """Failures of one class, as raised."""
    if known is ForeignFailure:
        return st.builds(
            ForeignFailure,
            foreign_code=st.text(min_size=1).filter(lambda code: code not in type_of),
            foreign_title=st.text(min_size=1),
            foreign_message=st.text(min_size=1),
            foreign_user_message=st.text(min_size=1),
            foreign_details=st.dictionaries(st.text(), JSON, max_size=3),
        )
    declared, _ = detail_types(known)
    return st.builds(known, **{name: values(hint) for name, hint in declared.items()})


@st.composite
def specimens(draw: st.DrawFn, known: type[Failure]) -> Failure:
    """Failures of one class that were narrowed, placed, identified and stamped on their way up."""
    failure = draw(bare(known))
    retryable = known.declared.retryable and draw(st.booleans())
    failure.narrow(
        retryable=retryable,
        recovery=draw(st.sampled_from([way for way in Recovery if retryable or not way.repeats])),
        actions=tuple(action for action in known.declared.actions if draw(st.booleans())),
        retry_after=draw(st.none() | st.floats(0.0, 86_400.0)),
    )
    failure.during(draw(st.text()))
    failure.about(draw(st.builds(Ids, **{name: st.none() | st.text() for name in ID_NAMES})))
    if draw(st.booleans()):
        failure.stamped(draw(st.floats(0.0, 4_000_000_000.0)))
    return failure


ID_NAMES = (
    "request_id",
    "run_id",
    "task_id",
    "project_id",
    "session_id",
    "runner_type",
    "provider",
    "model",
)


class Specimen(
    Failure,
    code="SPECIMEN_TAKEN",
    kind=Kind.BUSY,
    title="A specimen",
    user_message="{name} was taken {count} times; take another.",
    phase="collect",
    actions=(Action.RETRY, Action.WAIT, Action.CANCEL),
):
    """Somebody else took the specimen.

    It stands for failures of every room.
    """

    name: str
    count: int = 1
