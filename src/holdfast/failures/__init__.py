"""One type for everything that is expected to go wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import lazy_exports
from holdfast.failures.base import (
    Failure,
    ForeignFailure,
    Ids,
    set_class_loader,
    title_of,
    type_of,
)
from holdfast.failures.boundary import (
    TooManyOpenFiles,
    UnexpectedError,
    boundary,
    descriptors_exhausted,
    only_failure,
    ungrouped,
)
from holdfast.failures.kinds import OWN_RPC_CODE, Action, Kind, Recovery
from holdfast.failures.retry import GiveUp, RetryLater, RetryPolicy, retry_decision
from holdfast.failures.wire import from_rpc_data, from_wire, to_log, to_rpc_error, to_wire

if TYPE_CHECKING:
    from holdfast.failures.retry_after import parse_retry_after

__all__ = [
    "OWN_RPC_CODE",
    "Action",
    "Failure",
    "ForeignFailure",
    "GiveUp",
    "Ids",
    "Kind",
    "Recovery",
    "RetryLater",
    "RetryPolicy",
    "TooManyOpenFiles",
    "UnexpectedError",
    "boundary",
    "descriptors_exhausted",
    "from_rpc_data",
    "from_wire",
    "only_failure",
    "parse_retry_after",
    "retry_decision",
    "set_class_loader",
    "title_of",
    "to_log",
    "to_rpc_error",
    "to_wire",
    "type_of",
    "ungrouped",
]

__getattr__ = lazy_exports(
    __name__, {"parse_retry_after": "retry_after"}
)  # few ask, and it is dear
