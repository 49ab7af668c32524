"""Kinds of failures, and the HTTP status, JSON-RPC code, exit status and recovery of each.

Edges (HTTP, JSON-RPC, exit statuses, retry rules) look only at the kind, never at classes and
never at text. Every table below is total: a new kind without a row does not import.
"""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What a failure asks of its caller."""

    MALFORMED = "malformed"  # it cannot even be read: write it differently
    INVALID = "invalid"  # the request is wrong: change it
    MISSING = "missing"  # what was named does not exist
    CONFLICT = "conflict"  # the world moved on: look again, then decide
    STALE = "stale"  # what was agreed to is no longer what would be done
    DENIED = "denied"  # a policy said no
    NEEDS_APPROVAL = "needs_approval"  # a person must say yes first
    UNAUTHENTICATED = "unauthenticated"  # the caller has not shown who they are
    CREDENTIALS = "credentials"  # a service that we depend on refused our key
    BUSY = "busy"  # no room now: the same request may succeed later
    LIMITED = "limited"  # too often: the same request may succeed after a while
    UNAVAILABLE = "unavailable"  # what is needed is not there now
    LOST = "lost"  # the peer is gone: reconnect and resume
    LATE = "late"  # a deadline passed before the answer
    UNCERTAIN = "uncertain"  # it may have happened: find out before repeating
    SPENT = "spent"  # a budget ran out
    CANCELLED = "cancelled"  # we were asked to stop
    NOT_DURABLE = "not_durable"  # it could not be written down
    MISCONFIGURED = "misconfigured"  # the settings are wrong: change them
    UNCONFINED = "unconfined"  # there is no sandbox to run it in
    BROKEN = "broken"  # a contract was broken: stop and report

    @property
    def passes(self) -> bool:
        """Whether waiting alone can help."""
        return self in {Kind.BUSY, Kind.LIMITED, Kind.UNAVAILABLE, Kind.LOST}

    @property
    def http_status(self) -> int:
        """The status of an HTTP answer that carries such a failure."""
        return _ROWS[self][0]

    @property
    def rpc_code(self) -> int:
        """The JSON-RPC code on a foreign wire that has none of its own for it."""
        return _ROWS[self][1]

    @property
    def exit_status(self) -> int:
        """The exit status of a command that ends with such a failure."""
        return _ROWS[self][2]

    @property
    def recovery(self) -> Recovery:
        """What usually helps; a failure may know better."""
        return _ROWS[self][3]


class Recovery(StrEnum):
    """The one way back that a failure recommends."""

    FIX_INPUT = "fix_input"
    WAIT = "wait"
    RETRY_IMMEDIATE = "retry_immediate"
    RETRY_BACKOFF = "retry_backoff"
    USE_ALTERNATIVE = "use_alternative"
    ESCALATE = "escalate"
    NONE = "none"

    @property
    def repeats(self) -> bool:
        """Whether it consists of making the same request again."""
        return self in {Recovery.WAIT, Recovery.RETRY_IMMEDIATE, Recovery.RETRY_BACKOFF}


class Action(StrEnum):
    """What a screen may offer a person to do about a failure."""

    RETRY = "retry"
    RESUME = "resume"
    REGENERATE = "regenerate"
    SWITCH_MODEL = "switch_model"
    SWITCH_RUNNER = "switch_runner"
    OPEN_SETTINGS = "open_settings"
    GIVE_CONSENT = "give_consent"
    OVERRIDE_POLICY = "override_policy"
    RESTORE_CHECKPOINT = "restore_checkpoint"
    FREE_DISK_SPACE = "free_disk_space"
    REVIEW_DRAFT = "review_draft"
    MERGE_INTO_DRAFT = "merge_into_draft"
    PUBLISH_PARTIAL = "publish_partial"
    FORCE = "force"
    SEND_TO_AGENT = "send_to_agent"
    DISCARD_DRAFT = "discard_draft"
    VIEW_REPORT = "view_report"
    RESTART_BACKEND = "restart_backend"
    WAIT = "wait"
    CANCEL = "cancel"


OWN_RPC_CODE = -32000  # on our own protocols; the whole failure travels in `data`

_ROWS: dict[Kind, tuple[int, int, int, Recovery]] = {
    Kind.MALFORMED: (400, -32600, 2, Recovery.FIX_INPUT),
    Kind.INVALID: (422, -32602, 2, Recovery.FIX_INPUT),
    Kind.MISSING: (404, -32004, 1, Recovery.FIX_INPUT),
    Kind.CONFLICT: (409, -32600, 1, Recovery.FIX_INPUT),
    Kind.STALE: (412, -32600, 1, Recovery.FIX_INPUT),
    Kind.DENIED: (403, -32600, 1, Recovery.ESCALATE),
    Kind.NEEDS_APPROVAL: (403, -32600, 3, Recovery.ESCALATE),
    Kind.UNAUTHENTICATED: (401, -32600, 4, Recovery.FIX_INPUT),
    Kind.CREDENTIALS: (424, -32603, 4, Recovery.FIX_INPUT),
    Kind.BUSY: (503, -32001, 69, Recovery.RETRY_BACKOFF),
    Kind.LIMITED: (429, -32001, 69, Recovery.WAIT),
    Kind.UNAVAILABLE: (503, -32603, 69, Recovery.RETRY_BACKOFF),
    Kind.LOST: (502, -32603, 69, Recovery.RETRY_BACKOFF),
    Kind.LATE: (504, -32603, 1, Recovery.RETRY_BACKOFF),
    Kind.UNCERTAIN: (502, -32603, 1, Recovery.ESCALATE),
    Kind.SPENT: (403, -32603, 5, Recovery.ESCALATE),
    Kind.CANCELLED: (499, -32603, 130, Recovery.NONE),
    Kind.NOT_DURABLE: (507, -32603, 74, Recovery.ESCALATE),
    Kind.MISCONFIGURED: (500, -32603, 78, Recovery.FIX_INPUT),
    Kind.UNCONFINED: (503, -32603, 126, Recovery.ESCALATE),
    Kind.BROKEN: (500, -32603, 1, Recovery.ESCALATE),
}
assert _ROWS.keys() == set(Kind), "every kind has a row"
