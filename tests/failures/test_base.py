"""One declaration form: defaults of the class, what an instance may say, and what it survives."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.app.failure_catalogue import all_failures
from holdfast.failures import Action, Failure, ForeignFailure, Ids, Kind, Recovery
from holdfast.failures.base import Circumstances, revive
from tests.failures.specimens import Specimen, specimens


class Final(
    Failure,
    code="SPECIMEN_FINAL",
    kind=Kind.BROKEN,
    title="Over",
    user_message="It is over; begin again.",
):
    """It is over."""


class Several(
    Failure,
    code="SPECIMEN_SEVERAL",
    kind=Kind.BROKEN,
    title="Gone",
    user_message="Gone: {names}.",
):
    """Some are gone."""

    names: tuple[str, ...]


each_code = pytest.mark.parametrize("known", all_failures(), ids=lambda known: known.code)


@pytest.mark.promise("T1")
def test_a_failure_has_every_field_of_the_contract() -> None:
    failure = Specimen(name="beetle", count=2)

    assert (failure.code, failure.category, failure.kind) == (
        "SPECIMEN_TAKEN",
        "SPECIMEN",
        Kind.BUSY,
    )
    assert failure.phase == "collect"
    assert failure.title == "A specimen"
    assert failure.message == "Somebody else took the specimen (name='beetle', count=2)"
    assert failure.user_message == "beetle was taken 2 times; take another."
    assert (failure.recovery, failure.retryable) == (Recovery.RETRY_BACKOFF, True)
    assert failure.actions == (Action.RETRY, Action.WAIT, Action.CANCEL)
    assert failure.details == {"name": "beetle", "count": 2}
    assert failure.retry_after is None
    assert failure.timestamp is None
    assert failure.ids == Ids()
    assert str(failure) == f"SPECIMEN_TAKEN: {failure.message}"
    assert repr(failure) == "Specimen(name='beetle', count=2)"


def test_a_failure_without_details_is_its_sentence() -> None:
    assert str(Final()) == "SPECIMEN_FINAL: It is over"
    assert Final().user_message == "It is over; begin again."


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ((), "Gone: ."),
        (("a",), "Gone: a."),
        (("a", "b"), "Gone: a, b."),
        (tuple("abcdefghijkl"), "Gone: a, b, c, d, e, f, g, h, i, j and 2 more."),
    ],
)
def test_several_details_are_read_as_a_list(names: tuple[str, ...], said: str) -> None:
    assert Several(names=names).user_message == said


def test_a_failure_is_raised_and_caught_as_any_exception() -> None:
    with pytest.raises(Specimen, match="beetle") as raised:
        raise Specimen(name="beetle")

    assert raised.value == Specimen(name="beetle", count=1)


def test_a_long_detail_is_abridged_for_logs_and_whole_in_the_details() -> None:
    failure = Specimen(name="x" * 10_000_000)

    assert len(str(failure)) < 1_000
    assert len(repr(failure)) < 1_000
    assert failure.details["name"] == "x" * 10_000_000


@pytest.mark.promise("T1")
@pytest.mark.parametrize(
    ("narrowing", "expected"),
    [
        ({}, (Recovery.RETRY_BACKOFF, True, None)),
        ({"retry_after": 3.5}, (Recovery.RETRY_BACKOFF, True, 3.5)),
        ({"recovery": Recovery.WAIT}, (Recovery.WAIT, True, None)),
        ({"recovery": Recovery.ESCALATE}, (Recovery.ESCALATE, True, None)),
        ({"recovery": Recovery.NONE, "retryable": False}, (Recovery.NONE, False, None)),
    ],
)
def test_an_instance_narrows_what_its_class_declares(
    narrowing: dict[str, object], expected: tuple[Recovery, bool, float | None]
) -> None:
    failure = Specimen(name="beetle").narrow(**narrowing)  # type: ignore[arg-type]  # rows of a table

    assert (failure.recovery, failure.retryable, failure.retry_after) == expected
    assert Specimen(name="beetle").retryable, "its class is as it was"


@pytest.mark.promise("T1")
def test_actions_are_narrowed_and_reordered() -> None:
    failure = Specimen(name="beetle").narrow(actions=(Action.WAIT, Action.RETRY))

    assert failure.actions == (Action.WAIT, Action.RETRY)


@pytest.mark.promise("T1")
@pytest.mark.parametrize(
    "widening",
    [
        {"actions": (Action.FORCE,)},
        {"actions": (Action.RETRY, Action.FREE_DISK_SPACE)},
        {"retryable": False},  # while its recovery still says to repeat
    ],
)
def test_narrowing_never_widens(widening: dict[str, object]) -> None:
    with pytest.raises(AssertionError):
        Specimen(name="beetle").narrow(**widening)  # type: ignore[arg-type]  # rows of a table


@pytest.mark.promise("T1")
@pytest.mark.parametrize("widening", [{"retryable": True}, {"recovery": Recovery.WAIT}])
def test_what_never_succeeds_is_never_repeated(widening: dict[str, object]) -> None:
    with pytest.raises(AssertionError):
        Final().narrow(**widening)  # type: ignore[arg-type]  # rows of a table


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        ({"code": "SPECIMEN_TAKEN"}, "declared twice"),
        ({"code": "specimen_small"}, "lacks"),
        ({"title": ""}, "lacks"),
        ({"user_message": ""}, "lacks"),
        ({"recovery": Recovery.WAIT, "retryable": False}, "cannot succeed"),
    ],
)
def test_a_declaration_that_says_too_little_is_refused(
    header: dict[str, object], complaint: str
) -> None:
    whole = {"code": "SPECIMEN_NEW", "kind": Kind.BUSY, "title": "T", "user_message": "U."}

    with pytest.raises(TypeError, match=complaint):
        type("New", (Failure,), {"__doc__": "It is new."}, **(whole | header))
    with pytest.raises(TypeError, match="lacks"):
        type("New", (Failure,), {}, **whole)


@pytest.mark.parametrize(
    ("details", "complaint"),
    [({}, "lacks name"), ({"count": 1}, "lacks name"), ({"name": "a", "size": 1}, "has no size")],
)
def test_a_failure_is_made_of_its_details_and_no_others(
    details: dict[str, object], complaint: str
) -> None:
    with pytest.raises(TypeError, match=complaint):
        type.__call__(Specimen, **details)


def test_whoever_knows_first_where_and_when_and_about_what_is_believed() -> None:
    failure = Specimen(name="beetle").restored(
        Circumstances(phase="", recovery=Recovery.WAIT, retryable=True, actions=()), None
    )

    failure.during("publish.journal").during("publish")
    failure.stamped(10.0).stamped(20.0)
    failure.about(Ids(run_id="r1")).about(Ids(run_id="r2", task_id="t2"))

    assert failure.phase == "publish.journal"
    assert failure.timestamp == 10.0
    assert failure.ids == Ids(run_id="r1", task_id="t2")
    assert failure.ids.known() == {"run_id": "r1", "task_id": "t2"}


@pytest.mark.parametrize(
    ("other", "equal"),
    [
        (Specimen(name="beetle"), True),
        (Specimen(name="beetle").stamped(5.0), True),
        (Specimen(name="beetle", count=2), False),
        (Specimen(name="beetle").narrow(retry_after=1.0), False),
        (Specimen(name="beetle").about(Ids(run_id="r")), False),
        (ValueError("beetle"), False),
        (
            ForeignFailure(
                foreign_code="SPECIMEN_TAKEN",
                foreign_title="A specimen",
                foreign_message="",
                foreign_user_message="",
                foreign_details={"name": "beetle", "count": 1},
            ),
            False,
        ),
    ],
)
def test_failures_are_equal_when_they_say_the_same(other: Exception, equal: bool) -> None:
    assert (Specimen(name="beetle") == other) is equal


def test_equal_failures_hash_alike() -> None:
    assert len({Specimen(name="beetle"), Specimen(name="beetle")}) == 1


@pytest.mark.promise("T1")
@each_code
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_every_failure_survives_copies_and_pickle(
    known: type[Failure], data: st.DataObject
) -> None:
    failure = data.draw(specimens(known))

    for again in (
        copy.copy(failure),
        copy.deepcopy(failure),
        pickle.loads(pickle.dumps(failure)),
    ):
        assert type(again) is known
        assert again == failure
        assert again.timestamp == failure.timestamp
        assert (str(again), repr(again)) == (str(failure), repr(failure))


@pytest.mark.parametrize(
    ("code", "details"),
    [
        ("LATER_INVENTED", {"depth": 3}),
        ("SPECIMEN_TAKEN", {"name": "beetle"}),
        ("SPECIMEN_TAKEN", {"name": "beetle", "count": 1, "colour": "green"}),
    ],
)
def test_a_stored_failure_of_another_version_stays_readable(
    code: str, details: dict[str, object]
) -> None:
    failure = revive(code, details, Specimen.declared, 7.0)

    assert isinstance(failure, ForeignFailure)
    assert (failure.foreign_code, failure.foreign_details) == (code, details)
    assert (failure.circumstances, failure.timestamp) == (Specimen.declared, 7.0)
