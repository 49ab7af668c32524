"""Which versions of Codex are supported, and which one a server is."""

from __future__ import annotations

import re

from holdfast.codex.failures import CodexIncompatible

OLDEST = "0.140.0"  # the first that lists and terminates background terminals one by one
NEWEST = "0.166.0"  # the newest that the tests ran with; newer ones are expected to work
UNKNOWN = "of an unknown version"


def version_of(user_agent: str) -> str:
    """The version in what `initialize` is answered with, such as `holdfast/0.166.0 (Debian …)`."""
    found = re.match(r"[^/\s]+/(\d+\.\d+\.\d+[^\s;)]*)", user_agent)
    return found[1] if found else UNKNOWN


def incompatible(method: str, reason: str, *, version: str) -> CodexIncompatible:
    """The failure for a message that cannot be read, with the versions that can be."""
    return CodexIncompatible(
        method=method, reason=reason, version=version, oldest=OLDEST, newest=NEWEST
    )
