"""What each edge makes of a kind, row by row, and the closed lists of the contract."""

from __future__ import annotations

import pytest

from holdfast.failures import Action, Kind, Recovery

ROWS = [
    # kind, HTTP, JSON-RPC, exit status, recovery, whether waiting alone can help
    ("malformed", 400, -32600, 2, "fix_input", False),
    ("invalid", 422, -32602, 2, "fix_input", False),
    ("missing", 404, -32004, 1, "fix_input", False),
    ("conflict", 409, -32600, 1, "fix_input", False),
    ("stale", 412, -32600, 1, "fix_input", False),
    ("denied", 403, -32600, 1, "escalate", False),
    ("needs_approval", 403, -32600, 3, "escalate", False),
    ("unauthenticated", 401, -32600, 4, "fix_input", False),
    ("credentials", 424, -32603, 4, "fix_input", False),
    ("busy", 503, -32001, 69, "retry_backoff", True),
    ("limited", 429, -32001, 69, "wait", True),
    ("unavailable", 503, -32603, 69, "retry_backoff", True),
    ("lost", 502, -32603, 69, "retry_backoff", True),
    ("late", 504, -32603, 1, "retry_backoff", False),
    ("uncertain", 502, -32603, 1, "escalate", False),
    ("spent", 403, -32603, 5, "escalate", False),
    ("cancelled", 499, -32603, 130, "none", False),
    ("not_durable", 507, -32603, 74, "escalate", False),
    ("misconfigured", 500, -32603, 78, "fix_input", False),
    ("unconfined", 503, -32603, 126, "escalate", False),
    ("broken", 500, -32603, 1, "escalate", False),
]
EXITS_OF_FAILURES = {
    1: "failure",
    2: "usage",
    3: "needs approval",
    4: "auth",
    5: "budget",
    69: "unavailable",
    74: "not durable",
    78: "config",
    126: "no sandbox",
    130: "interrupted",
}
HTTP_OF_RUNS = {400, 403, 404, 409, 412, 422, 424, 429, 502, 503, 504}


def test_every_kind_has_its_row() -> None:
    rows = [
        (kind.value, kind.http_status, kind.rpc_code, kind.exit_status, kind.recovery, kind.passes)
        for kind in Kind
    ]

    assert rows == ROWS


def test_kinds_reach_every_exit_status_that_a_failure_may_have() -> None:
    assert {kind.exit_status for kind in Kind} == EXITS_OF_FAILURES.keys()


def test_kinds_reach_every_http_status_that_a_run_may_fail_with() -> None:
    assert {kind.http_status for kind in Kind} >= HTTP_OF_RUNS


@pytest.mark.promise("T2")
def test_recoveries_are_a_closed_list() -> None:
    assert [recovery.value for recovery in Recovery] == [
        "fix_input",
        "wait",
        "retry_immediate",
        "retry_backoff",
        "use_alternative",
        "escalate",
        "none",
    ]


def test_three_recoveries_repeat_the_request() -> None:
    repeating = {recovery for recovery in Recovery if recovery.repeats}

    assert repeating == {Recovery.WAIT, Recovery.RETRY_IMMEDIATE, Recovery.RETRY_BACKOFF}


@pytest.mark.promise("T2")
def test_actions_are_a_closed_list() -> None:
    assert [action.value for action in Action] == [
        "retry",
        "resume",
        "regenerate",
        "switch_model",
        "switch_runner",
        "open_settings",
        "give_consent",
        "override_policy",
        "restore_checkpoint",
        "free_disk_space",
        "review_draft",
        "merge_into_draft",
        "publish_partial",
        "force",
        "send_to_agent",
        "discard_draft",
        "view_report",
        "restart_backend",
        "wait",
        "cancel",
    ]
