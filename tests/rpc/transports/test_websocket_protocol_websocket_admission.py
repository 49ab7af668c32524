"""Who may upgrade, as a table: whoever is not meant is refused, each for the first reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.rpc.transports.websocket_protocol import (
    ADMITTED,
    FROM_A_PAGE,
    NO_NAME,
    NO_ROOM,
    NO_TOKEN,
    NOTHING_HERE,
    OTHER_NAME,
    READY,
    Policy,
    Request,
    Verdict,
    host_names,
    judge,
    needs_token,
    token_digest,
)

pytestmark = pytest.mark.promise("X12")

TOKEN = "s3cret-token"
POLICY = Policy(hosts=host_names("127.0.0.1", 4711, ["box.example"]), token=TOKEN)
GOOD = Request(path="/", hosts=("127.0.0.1:4711",), authorizations=(f"Bearer {TOKEN}",), origins=())


def host(*values: str) -> Request:
    return replace(GOOD, hosts=values)


def origin(*values: str) -> Request:
    return replace(GOOD, origins=values)


def shown(*values: str) -> Request:
    return replace(GOOD, authorizations=values)


def path(value: str) -> Request:
    return replace(GOOD, path=value)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (GOOD, ADMITTED),
        (host("localhost:4711"), ADMITTED),
        (host("LocalHost:4711"), ADMITTED),
        (host("[::1]:4711"), ADMITTED),
        (host("box.example:4711"), ADMITTED),
        (host(), NO_NAME),
        (host("127.0.0.1:4711", "127.0.0.1:4711"), NO_NAME),
        (host("127.0.0.1:4711", "evil.test"), NO_NAME),
        (host(""), OTHER_NAME),
        (host("127.0.0.1"), OTHER_NAME),
        (host("127.0.0.1:80"), OTHER_NAME),
        (host("127.0.0.1:47110"), OTHER_NAME),
        (host("localhost.:4711"), OTHER_NAME),
        (host("evil.test:4711"), OTHER_NAME),
        (host("127.0.0.1.evil.test:4711"), OTHER_NAME),
        (host("evil.test@127.0.0.1:4711"), OTHER_NAME),
        (host("0.0.0.0:4711"), OTHER_NAME),
        (host("box.example"), OTHER_NAME),
        (origin("http://evil.test"), FROM_A_PAGE),
        (origin("null"), FROM_A_PAGE),
        (origin(""), FROM_A_PAGE),
        (origin("http://127.0.0.1.evil.test"), FROM_A_PAGE),
        (origin("http://localhost:1"), FROM_A_PAGE),
        (origin("http://127.0.0.1:4711"), FROM_A_PAGE),
        (shown(), NO_TOKEN),
        (shown(""), NO_TOKEN),
        (shown("Bearer"), NO_TOKEN),
        (shown("Bearer "), NO_TOKEN),
        (shown(TOKEN), NO_TOKEN),
        (shown(f"Basic {TOKEN}"), NO_TOKEN),
        (shown(f"Bearer {TOKEN[:-1]}"), NO_TOKEN),
        (shown(f"Bearer {TOKEN}x"), NO_TOKEN),
        (shown(f"Bearer {TOKEN.upper()}"), NO_TOKEN),
        (shown(f"Bearer {TOKEN}", f"Bearer {TOKEN}"), NO_TOKEN),
        (shown("Bearer \udcff\udcfe"), NO_TOKEN),
        (shown("Bearer tökén"), NO_TOKEN),
        (shown(f"bearer {TOKEN}"), ADMITTED),
        (path("/readyz"), READY),
        (replace(path("/readyz"), authorizations=()), READY),
        (replace(path("/readyz"), hosts=("evil.test",)), OTHER_NAME),
        (replace(path("/readyz"), origins=("null",)), FROM_A_PAGE),
        (path("/readyz/"), NOTHING_HERE),
        (path("/other"), NOTHING_HERE),
        (path("//"), NOTHING_HERE),
        (path(""), NOTHING_HERE),
        (path("*"), NOTHING_HERE),
        (path(f"/?token={TOKEN}"), NOTHING_HERE),
        (path("http://127.0.0.1:4711/"), NOTHING_HERE),
    ],
)
def test_verdict(request_: Request, expected: Verdict) -> None:
    assert judge(request_, POLICY, has_room=True) == expected


def test_without_room_only_the_admitted_are_told_so() -> None:
    assert judge(GOOD, POLICY, has_room=False) == NO_ROOM
    assert judge(shown(), POLICY, has_room=False) == NO_TOKEN
    assert judge(path("/readyz"), POLICY, has_room=False) == READY


def test_at_a_unix_socket_any_one_name_will_do() -> None:
    policy = Policy(hosts=None, token=None)
    assert judge(host("whatever"), policy, has_room=True) == ADMITTED
    assert judge(host(), policy, has_room=True) == NO_NAME
    assert judge(origin("null"), policy, has_room=True) == FROM_A_PAGE


def test_without_a_token_whoever_calls_us_right_may_enter() -> None:
    policy = replace(POLICY, token=None)
    assert judge(shown(), policy, has_room=True) == ADMITTED
    assert judge(host("evil.test:4711"), policy, has_room=True) == OTHER_NAME


GUESTS = {token_digest("of-a-guest"): "the guest"}


@pytest.mark.parametrize("token", [TOKEN, None])
@pytest.mark.parametrize(
    ("shows", "expected"),
    [
        ("Bearer of-a-guest", Verdict(101, guest="the guest")),
        (f"Bearer {TOKEN}", ADMITTED),
        ("Bearer of-a-gues", NO_TOKEN),
        ("Basic of-a-guest", NO_TOKEN),
        ("", NO_TOKEN),
    ],
)
def test_a_guest_comes_in_by_its_name_whether_others_need_a_token_or_not(
    token: str | None, shows: str, expected: Verdict
) -> None:
    policy = replace(POLICY, token=token, guests=GUESTS)
    if token is None and expected == NO_TOKEN:
        expected = ADMITTED
    assert judge(shown(shows), policy, has_room=True) == expected
    assert judge(
        shown(shows, "Bearer of-a-guest"), replace(policy, token=TOKEN), has_room=True
    ) == (NO_TOKEN)


LOOPBACK_7 = {"127.0.0.1:7", "localhost:7", "[::1]:7"}
LOOPBACK_80 = {"127.0.0.1", "localhost", "[::1]", "127.0.0.1:80", "localhost:80", "[::1]:80"}


@pytest.mark.parametrize(
    ("address", "port", "names", "expected"),
    [
        ("127.0.0.1", 7, [], LOOPBACK_7),
        ("::1", 7, [], LOOPBACK_7),
        ("127.0.0.9", 7, [], LOOPBACK_7 | {"127.0.0.9:7"}),
        ("10.0.0.1", 7, ["Box"], LOOPBACK_7 | {"10.0.0.1:7", "box:7"}),
        ("fe80::1", 7, [], LOOPBACK_7 | {"[fe80::1]:7"}),
        ("0.0.0.0", 7, ["box:443", "[::2]"], LOOPBACK_7 | {"box:443", "[::2]:7"}),
        ("::", 80, [], LOOPBACK_80),
    ],
)
def test_names_by_which_we_may_be_called(
    address: str, port: int, names: list[str], expected: set[str]
) -> None:
    assert host_names(address, port, names) == expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1", False),
        ("127.255.0.3", False),
        ("::1", False),
        ("0.0.0.0", True),
        ("::", True),
        ("10.0.0.1", True),
        ("192.0.2.7", True),
        ("fe80::1%eth0", True),
        ("::ffff:10.0.0.1", True),
    ],
)
def test_whoever_listens_for_others_needs_a_token(address: str, expected: bool) -> None:
    assert needs_token(address) == expected
