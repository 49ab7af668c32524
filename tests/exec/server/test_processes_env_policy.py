"""Which variables a process gets."""

from __future__ import annotations

import pytest

from holdfast.exec.failures import RequestInvalid
from holdfast.exec.protocol import EnvPolicy
from holdfast.exec.server.processes import CORE, NEVER, environment

OWN = {"PATH": "/bin", "HOME": "/root", "EDITOR": "vi", "MY_TOKEN": "t", "api_key": "k"}
NONE = EnvPolicy("none", False, (), {}, ())


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (None, {}),
        (NONE, {}),
        (EnvPolicy("core", False, (), {}, ()), {"PATH": "/bin", "HOME": "/root"}),
        (
            EnvPolicy("all", False, (), {}, ()),
            {"PATH": "/bin", "HOME": "/root", "EDITOR": "vi"},
        ),
        (EnvPolicy("all", True, (), {}, ()), OWN),
        (EnvPolicy("all", False, ("ed*", "hom?"), {}, ()), {"PATH": "/bin"}),
        (EnvPolicy("all", False, ("[EP]*",), {}, ("PATH",)), {"PATH": "/bin"}),
        (EnvPolicy("none", False, (), {"MY_TOKEN": "set"}, ()), {"MY_TOKEN": "set"}),
        (EnvPolicy("core", False, (), {"X": "1"}, ("x", "path")), {"PATH": "/bin", "X": "1"}),
    ],
)
def test_a_policy_lets_through(policy: EnvPolicy | None, expected: dict[str, str]) -> None:
    assert environment(policy, own=OWN, asked={}) == expected
    assert environment(policy, own=OWN, asked={"Y": "2"}) == {**expected, "Y": "2"}


def test_no_pattern_keeps_us_busy() -> None:
    policy = EnvPolicy("none", False, (), {"A" * 200: "x"}, ("*a" * 50 + "*b",))

    assert environment(policy, own={}, asked={}) == {}


def test_what_is_asked_for_wins() -> None:
    policy = EnvPolicy("core", False, (), {"HOME": "/set"}, ())

    assert environment(policy, own=OWN, asked={"HOME": "/asked"})["HOME"] == "/asked"


@pytest.mark.parametrize("name", sorted(NEVER))
def test_some_variables_reach_nobody(name: str) -> None:
    policy = EnvPolicy("all", True, (), {name: "x"}, ())

    assert environment(policy, own={name: "x"}, asked={name: "x"}) == {}


def test_an_unknown_beginning_is_refused() -> None:
    with pytest.raises(RequestInvalid):
        environment(EnvPolicy("most", False, (), {}, ()), own=OWN, asked={})


def test_the_core_is_what_shells_need() -> None:
    assert {"PATH", "HOME", "USER", "SHELL", "TMPDIR", "LANG"} <= CORE
