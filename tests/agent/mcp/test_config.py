"""Servers are read from files that mean one thing, and starting one is described to the byte."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.agent.failures import McpSettingsUnfit
from holdfast.agent.mcp.config import (
    McpServerConfig,
    is_program,
    own_servers,
    project_servers,
    server_permission,
    tool_names,
)


def written(**servers: object) -> str:
    return json.dumps({"mcpServers": servers})


FILE = written(
    one={"command": "x", "args": ["${HOME}/a", "$b"], "env": {"KEY": "${TOKEN}"}, "type": "stdio"},
    two={"url": "https://a.test/mcp", "headers": {"K": "${TOKEN}${NONE}"}, "alwaysAllow": ["t"]},
    off={"command": "y", "disabled": True},
)


def test_the_persons_own_are_filled_in() -> None:
    assert own_servers("f", FILE, {"HOME": "/me", "TOKEN": "t1"}) == (
        McpServerConfig("one", True, "x", ("/me/a", "$b"), {"KEY": "t1"}),
        McpServerConfig("two", True, url="https://a.test/mcp", headers={"K": "t1"}, allowed=("t",)),
    )
    assert own_servers("f", " \n", {}) == ()


@pytest.mark.promise("C10")
def test_a_projects_words_are_taken_as_they_are_and_allow_nothing() -> None:
    one, two = project_servers(FILE)

    assert one == McpServerConfig("one", False, "x", ("${HOME}/a", "$b"), {"KEY": "${TOKEN}"})
    assert two.headers == {"K": "${TOKEN}${NONE}"}
    assert not two.allows("t")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "truncated"),
        ("[]", "object"),
        ("[" * 100_000, "object"),
        (written(x={}), "either a command or a url"),
        (written(x={"command": "a", "url": "https://b"}), "either a command or a url"),
        (written(x={"url": "file:///etc"}), "neither http"),
        (written(**{"a b": {"command": "x"}}), "is no name"),
        (written(x={"command": "a\0b"}), "NUL"),
        (written(x={"command": 1}), "str"),
        (written(**{f"s{n}": {"command": "x"} for n in range(33)}), "more than 32"),
    ],
)
def test_what_makes_no_sense_starts_nothing(text: str, reason: str) -> None:
    with pytest.raises(McpSettingsUnfit, match=reason):
        project_servers(text)


@pytest.mark.parametrize(
    ("word", "expected"),
    [("run.py", True), ("/a/INDEX.JS", True), ("data.db", False), ("--x", False), ("py", False)],
)
def test_what_is_run_is_told_from_data(word: str, expected: bool) -> None:
    assert is_program(word) is expected


SERVER = McpServerConfig("s", False, "run", ("a", "b"), {"K": "v"})
CONTENTS = [("/bin/run", "h1"), ("a", "h2")]


@pytest.mark.promise("C19")
@pytest.mark.parametrize(
    ("server", "contents"),
    [
        (McpServerConfig("s", False, "run2", ("a", "b"), {"K": "v"}), CONTENTS),
        (McpServerConfig("s", False, "run", ("a b",), {"K": "v"}), CONTENTS),
        (McpServerConfig("s", False, "run", ("a", "b"), {"K": "w"}), CONTENTS),
        (McpServerConfig("s", False, "run", ("a", "b"), {}), CONTENTS),
        (McpServerConfig("t", False, "run", ("a", "b"), {"K": "v"}), CONTENTS),
        (SERVER, [("/bin/run", "h0"), ("a", "h2")]),
        (SERVER, [("/bin/run", "h1"), ("a", "h0")]),
        (SERVER, [("/usr/bin/run", "h1"), ("a", "h2")]),
    ],
)
def test_anything_that_is_swapped_makes_another_wish(
    server: McpServerConfig, contents: list[tuple[str, str]]
) -> None:
    assert server_permission(server, contents).digest != server_permission(SERVER, CONTENTS).digest


def test_an_address_is_a_wish_of_its_own() -> None:
    one = McpServerConfig("s", False, url="https://a.test", headers={"K": "v"})
    other = McpServerConfig("s", False, url="https://a.test", headers={"K": "w"})

    assert server_permission(one, []).facts == (
        ("server", "s"),
        ("address", "https://a.test"),
        ("header K", "v"),
    )
    assert server_permission(one, []).digest != server_permission(other, []).digest


@pytest.mark.parametrize(
    ("tools", "names"),
    [
        ([("a", "x"), ("b", "y")], ["x", "y"]),
        ([("a", "x"), ("b", "x")], ["a_x", "b_x"]),
        ([("a", "read")], ["a_read"]),
        ([("a", "b.c/d")], ["b_c_d"]),
    ],
)
def test_tools_get_names(tools: list[tuple[str, str]], names: list[str]) -> None:
    assert tool_names(["read"], tools) == names


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "a_b"]), st.text(max_size=80) | st.sampled_from(["b_x", "x"])
        ),
        max_size=8,
        unique=True,
    )
)
def test_names_are_fit_and_differ(tools: list[tuple[str, str]]) -> None:
    names = tool_names(["x"], tools)

    assert len({*names, "x"}) == len(tools) + 1
    assert all(0 < len(name) <= 64 for name in names)
    assert all(all(c.isascii() and (c.isalnum() or c in "_-") for c in name) for name in names)
