"""Value types and text functions: byte paths, cursors, ids, text escapes, HTML pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import lazy_exports
from holdfast.nouns.failures import CursorInvalid, IdInvalid, PathInvalid
from holdfast.nouns.ids import ENTROPY_BYTES, Cursor, Id, check_id, make_id
from holdfast.nouns.paths import PATH_BYTES_MAX, RelativePath
from holdfast.nouns.text import cut, escaped, printable, prose, shown

if TYPE_CHECKING:
    from holdfast.nouns.autorun import CHANGE_DENIED, CREATION_DENIED, autorun_reason
    from holdfast.nouns.pages import html_failure, html_page, html_table

__all__ = [
    "CHANGE_DENIED",
    "CREATION_DENIED",
    "ENTROPY_BYTES",
    "PATH_BYTES_MAX",
    "Cursor",
    "CursorInvalid",
    "Id",
    "IdInvalid",
    "PathInvalid",
    "RelativePath",
    "autorun_reason",
    "check_id",
    "cut",
    "escaped",
    "html_failure",
    "html_page",
    "html_table",
    "make_id",
    "printable",
    "prose",
    "shown",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "CREATION_DENIED": "autorun",
        "CHANGE_DENIED": "autorun",
        "html_failure": "pages",
        "html_page": "pages",
        "html_table": "pages",
        "autorun_reason": "autorun",
    },
)
