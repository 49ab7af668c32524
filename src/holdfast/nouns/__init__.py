"""The nouns that every room speaks in: byte paths, cursors, leases and ids."""

from holdfast.nouns.cursors import Cursor
from holdfast.nouns.escapes import escaped, shown
from holdfast.nouns.failures import CursorInvalid, IdInvalid, LeaseInvalid, PathInvalid
from holdfast.nouns.ids import ENTROPY_BYTES, Id, check_id, make_id
from holdfast.nouns.leases import Lease
from holdfast.nouns.paths import PATH_BYTES_MAX, RelativePath

__all__ = [
    "ENTROPY_BYTES",
    "PATH_BYTES_MAX",
    "Cursor",
    "CursorInvalid",
    "Id",
    "IdInvalid",
    "Lease",
    "LeaseInvalid",
    "PathInvalid",
    "RelativePath",
    "check_id",
    "escaped",
    "make_id",
    "shown",
]
