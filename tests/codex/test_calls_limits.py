"""Every method has a limit, and the table of the contract is kept."""

from __future__ import annotations

import pytest

from holdfast.codex.calls import limit_of
from holdfast.codex.wire.generated import CommandExecParams


@pytest.mark.promise("F7")
@pytest.mark.parametrize(
    ("method", "params", "limit"),
    [
        ("turn/start", {}, 300.0),
        ("turn/interrupt", {}, 30.0),
        ("thread/start", {}, 30.0),
        ("thread/list", None, 30.0),
        ("skills/list", {}, 30.0),
        ("config/read", {}, 10.0),
        ("config/value/write", {}, 10.0),
        ("command/exec", {"timeoutMs": 2000}, 12.0),
        ("command/exec", CommandExecParams(("ls",), timeout_ms=2000), 12.0),
        ("command/exec", CommandExecParams(("ls",)), 30.0),
        ("command/exec", {"timeoutMs": "soon"}, 30.0),
        ("command/exec", None, 30.0),
        ("model/list", {}, 30.0),
        ("anything/new", {}, 30.0),
    ],
)
def test_each_method_has_its_limit(method: str, params: object, limit: float) -> None:
    assert limit_of(method, params) == limit
