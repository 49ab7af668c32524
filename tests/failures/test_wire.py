"""A failure is written one way everywhere, and read back whoever wrote it."""

from __future__ import annotations

import json
import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.app.failure_catalogue import all_failures
from holdfast.failures import (
    Action,
    Failure,
    ForeignFailure,
    Ids,
    Kind,
    Recovery,
    from_rpc_data,
    from_wire,
    to_log,
    to_rpc_error,
    to_wire,
)
from tests.failures.specimens import ANY_VALUE, Specimen, specimens

each_code = pytest.mark.parametrize("known", all_failures(), ids=lambda known: known.code)

FAILURE = (
    Specimen(name="beetle")
    .narrow(actions=(Action.WAIT,), recovery=Recovery.WAIT, retry_after=2.5)
    .about(Ids(request_id="q", run_id="r", task_id="t", project_id="p", session_id="s"))
    .about(Ids(runner_type="codex", provider="openai", model="gpt"))
    .stamped(1_700_000_000.25)
)
WIRE = {
    "code": "SPECIMEN_TAKEN",
    "category": "SPECIMEN",
    "phase": "collect",
    "title": "A specimen",
    "message": "Somebody else took the specimen (name='beetle', count=1)",
    "userMessage": "beetle was taken 1 times; take another.",
    "recovery": "wait",
    "retryable": True,
    "actions": ["wait"],
    "details": {"name": "beetle", "count": 1},
    "timestamp": "2023-11-14T22:13:20.250000+00:00",
    "retryAfter": 2.5,
    "requestId": "q",
    "runId": "r",
    "taskId": "t",
    "projectId": "p",
    "sessionId": "s",
    "runnerType": "codex",
    "provider": "openai",
    "model": "gpt",
}
FOREIGN = {
    "code": "LATER_INVENTED_THING",
    "category": "LATER",
    "phase": "invent",
    "title": "Invented later",
    "message": "A log line of theirs",
    "userMessage": "Something new happened; update this program.",
    "recovery": "use_alternative",
    "retryable": True,
    "actions": ["switch_runner", "cancel"],
    "details": {"depth": 3, "names": ["a", ["b"]], "more": {"x": None}},
    "timestamp": "2031-01-02T03:04:05.000006+00:00",
    "runId": "r",
}


@pytest.mark.promise("T1", "T3")
def test_a_failure_is_written_as_the_contract_says() -> None:
    assert to_wire(FAILURE) == WIRE


@pytest.mark.promise("T3")
def test_what_does_not_apply_is_left_out() -> None:
    wire = to_wire(Specimen(name="beetle"))

    assert wire.keys() == WIRE.keys() - {
        "retryAfter",
        "requestId",
        "runId",
        "taskId",
        "projectId",
        "sessionId",
        "runnerType",
        "provider",
        "model",
    }
    assert wire["timestamp"] is None


@pytest.mark.promise("T3")
def test_a_log_line_is_the_same_object_in_snake_case() -> None:
    assert to_log(FAILURE) == {
        "error_code": "SPECIMEN_TAKEN",
        "error_category": "SPECIMEN",
        "phase": "collect",
        "recovery": "wait",
        "retryable": True,
        "message": "Somebody else took the specimen (name='beetle', count=1)",
        "details": {"name": "beetle", "count": 1},
        "request_id": "q",
        "run_id": "r",
        "task_id": "t",
        "project_id": "p",
        "session_id": "s",
        "runner_type": "codex",
        "provider": "openai",
        "model": "gpt",
    }


@pytest.mark.promise("T3")
def test_our_protocols_carry_the_object_in_data_and_foreign_ones_keep_their_codes() -> None:
    ours = {"code": -32000, "message": WIRE["message"], "data": WIRE}

    assert to_rpc_error(FAILURE) == ours
    assert to_rpc_error(FAILURE, code=-32010) == ours | {"code": -32010}
    assert from_rpc_data(WIRE) == FAILURE


@pytest.mark.parametrize("data", [None, 7, "text", [], {}, {"code": "X_Y"}, {"recovery": "wait"}])
def test_data_that_is_no_failure_of_ours_is_none(data: object) -> None:
    assert from_rpc_data(data) is None


@pytest.mark.promise("T3", "T4")
@each_code
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_every_failure_reads_back_as_it_was(known: type[Failure], data: st.DataObject) -> None:
    failure = data.draw(specimens(known))
    wire = to_wire(failure)

    for written in (json.dumps(wire, allow_nan=False).encode(), msgspec.json.encode(wire)):
        again = from_wire(json.loads(written))
        assert type(again) is known
        assert again == failure
        assert to_wire(again) == wire


@pytest.mark.promise("T3")
def test_an_unknown_failure_stays_usable_and_goes_back_out_unchanged() -> None:
    failure = from_wire(FOREIGN)

    assert isinstance(failure, ForeignFailure)
    assert failure.user_message == "Something new happened; update this program."
    assert (failure.recovery, failure.retryable) == (Recovery.USE_ALTERNATIVE, True)
    assert failure.actions == (Action.SWITCH_RUNNER, Action.CANCEL)
    assert to_wire(failure) == FOREIGN


@pytest.mark.parametrize(
    "details",
    [{}, {"name": 7, "count": 1}, {"name": "beetle", "count": 1, "colour": "green"}, None, []],
)
def test_a_known_code_with_strange_details_is_foreign(details: object) -> None:
    failure = from_wire(WIRE | {"details": details})

    assert isinstance(failure, ForeignFailure)
    assert to_wire(failure) == WIRE | {"details": details or {}}


def test_a_fact_that_has_a_default_may_be_missing() -> None:
    assert from_wire(WIRE | {"details": {"name": "beetle"}}) == FAILURE


@pytest.mark.parametrize(
    ("name", "said", "read"),
    [
        ("retryAfter", 3, 3.0),
        ("retryAfter", False, None),
        ("retryAfter", "3", None),
        ("retryAfter", -1, None),
        ("retryAfter", math.nan, None),
        ("retryAfter", math.inf, None),
        ("retryAfter", 10**400, None),
        ("timestamp", "2023-11-14T22:13:20", 1_700_000_000.0),
        ("timestamp", "2023-11-14T23:13:20+01:00", 1_700_000_000.0),
        ("timestamp", "0001-01-01T00:00:00", None),
        ("timestamp", "9999-12-31T23:59:59-12:00", None),
        ("timestamp", "yesterday", None),
        ("timestamp", 1_700_000_000, None),
    ],
)
def test_what_makes_no_sense_counts_as_absent(name: str, said: object, read: float | None) -> None:
    failure = from_wire(WIRE | {name: said})

    assert (failure.retry_after if name == "retryAfter" else failure.timestamp) == read


@pytest.mark.parametrize(
    "name", ["lone \ud800 surrogate", "\x00\x1b]52;c;\x07", "x" * 1_000_000, "𝔫𝔞𝔪𝔢"]
)
def test_any_text_is_written_as_valid_utf_8(name: str) -> None:
    wire = to_wire(Specimen(name=name, count=2**70))

    assert json.loads(json.dumps(wire, ensure_ascii=False, allow_nan=False).encode()) == wire
    assert to_wire(from_wire(wire))["details"] == wire["details"]


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([*WIRE, "unheardOf"]),
        ANY_VALUE | st.sampled_from([*WIRE.values(), *FOREIGN.values()]),
    )
)
def test_whatever_they_wrote_is_read_and_can_be_written(theirs: dict[str, object]) -> None:
    failure = from_wire(theirs)
    wire = to_wire(failure)

    assert json.loads(json.dumps(wire, allow_nan=False)) == wire
    assert failure.user_message
    assert str(failure)


@pytest.mark.promise("T3")
@pytest.mark.parametrize(
    ("former", "code", "details"),
    [
        ("DRAFT_MISSING", "NOT_FOUND_DRAFT", {"draft": "d", "project": "p"}),
        ("CHECKPOINT_MISSING", "NOT_FOUND_CHECKPOINT", {"checkpoint": "c"}),
        ("DRAFT_MOVED_ON", "APPROVAL_STALE_DIFF", {"draft": "d", "sealed": "a", "seal": "b"}),
    ],
)
def test_a_former_code_decodes_to_its_present_class(
    former: str, code: str, details: dict[str, object]
) -> None:
    failure = from_wire({"code": former, "details": details})

    assert (failure.code, failure.details) == (code, details)


def test_a_code_cannot_be_declared_while_it_is_a_former_one() -> None:
    with pytest.raises(TypeError, match="DRAFT_MISSING is declared twice"):

        class _Again(  # pyright: ignore[reportUnusedClass]  # its declaration is what fails
            Failure, code="DRAFT_MISSING", kind=Kind.MISSING, title="x", user_message="x"
        ):
            """Declared under a code that an earlier version used."""
