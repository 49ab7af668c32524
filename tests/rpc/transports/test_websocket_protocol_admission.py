"""Who may upgrade, as a table: whoever is not meant is refused, each for the first reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.rpc.transports.websocket_protocol import (
    ADMITTED,
    HOST_MISSING,
    HOST_REFUSED,
    NOT_FOUND,
    ORIGIN_REFUSED,
    READY,
    SERVER_FULL,
    TOKEN_REQUIRED,
    AdmissionPolicy,
    UpgradeReply,
    UpgradeRequest,
    host_names,
    needs_token,
    token_digest,
    upgrade_reply,
)

pytestmark = pytest.mark.promise("X12")

TOKEN = "s3cret-token"
POLICY = AdmissionPolicy(hosts=host_names("127.0.0.1", 4711, ["box.example"]), token=TOKEN)
GOOD = UpgradeRequest(
    path="/", hosts=("127.0.0.1:4711",), authorizations=(f"Bearer {TOKEN}",), origins=()
)


def host(*values: str) -> UpgradeRequest:
    return replace(GOOD, hosts=values)


def origin(*values: str) -> UpgradeRequest:
    return replace(GOOD, origins=values)


def shown(*values: str) -> UpgradeRequest:
    return replace(GOOD, authorizations=values)


def path(value: str) -> UpgradeRequest:
    return replace(GOOD, path=value)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (GOOD, ADMITTED),
        (host("localhost:4711"), ADMITTED),
        (host("LocalHost:4711"), ADMITTED),
        (host("[::1]:4711"), ADMITTED),
        (host("box.example:4711"), ADMITTED),
        (host(), HOST_MISSING),
        (host("127.0.0.1:4711", "127.0.0.1:4711"), HOST_MISSING),
        (host("127.0.0.1:4711", "evil.test"), HOST_MISSING),
        (host(""), HOST_REFUSED),
        (host("127.0.0.1"), HOST_REFUSED),
        (host("127.0.0.1:80"), HOST_REFUSED),
        (host("127.0.0.1:47110"), HOST_REFUSED),
        (host("localhost.:4711"), HOST_REFUSED),
        (host("evil.test:4711"), HOST_REFUSED),
        (host("127.0.0.1.evil.test:4711"), HOST_REFUSED),
        (host("evil.test@127.0.0.1:4711"), HOST_REFUSED),
        (host("0.0.0.0:4711"), HOST_REFUSED),
        (host("box.example"), HOST_REFUSED),
        (origin("http://evil.test"), ORIGIN_REFUSED),
        (origin("null"), ORIGIN_REFUSED),
        (origin(""), ORIGIN_REFUSED),
        (origin("http://127.0.0.1.evil.test"), ORIGIN_REFUSED),
        (origin("http://localhost:1"), ORIGIN_REFUSED),
        (origin("http://127.0.0.1:4711"), ORIGIN_REFUSED),
        (shown(), TOKEN_REQUIRED),
        (shown(""), TOKEN_REQUIRED),
        (shown("Bearer"), TOKEN_REQUIRED),
        (shown("Bearer "), TOKEN_REQUIRED),
        (shown(TOKEN), TOKEN_REQUIRED),
        (shown(f"Basic {TOKEN}"), TOKEN_REQUIRED),
        (shown(f"Bearer {TOKEN[:-1]}"), TOKEN_REQUIRED),
        (shown(f"Bearer {TOKEN}x"), TOKEN_REQUIRED),
        (shown(f"Bearer {TOKEN.upper()}"), TOKEN_REQUIRED),
        (shown(f"Bearer {TOKEN}", f"Bearer {TOKEN}"), TOKEN_REQUIRED),
        (shown("Bearer \udcff\udcfe"), TOKEN_REQUIRED),
        (shown("Bearer tökén"), TOKEN_REQUIRED),
        (shown(f"bearer {TOKEN}"), ADMITTED),
        (path("/readyz"), READY),
        (replace(path("/readyz"), authorizations=()), READY),
        (replace(path("/readyz"), hosts=("evil.test",)), HOST_REFUSED),
        (replace(path("/readyz"), origins=("null",)), ORIGIN_REFUSED),
        (path("/readyz/"), NOT_FOUND),
        (path("/other"), NOT_FOUND),
        (path("//"), NOT_FOUND),
        (path(""), NOT_FOUND),
        (path("*"), NOT_FOUND),
        (path(f"/?token={TOKEN}"), NOT_FOUND),
        (path("http://127.0.0.1:4711/"), NOT_FOUND),
    ],
)
def test_verdict(request_: UpgradeRequest, expected: UpgradeReply) -> None:
    assert upgrade_reply(request_, POLICY, has_room=True) == expected


def test_without_room_only_the_admitted_are_told_so() -> None:
    assert upgrade_reply(GOOD, POLICY, has_room=False) == SERVER_FULL
    assert upgrade_reply(shown(), POLICY, has_room=False) == TOKEN_REQUIRED
    assert upgrade_reply(path("/readyz"), POLICY, has_room=False) == READY


def test_at_a_unix_socket_any_one_name_will_do() -> None:
    policy = AdmissionPolicy(hosts=None, token=None)
    assert upgrade_reply(host("whatever"), policy, has_room=True) == ADMITTED
    assert upgrade_reply(host(), policy, has_room=True) == HOST_MISSING
    assert upgrade_reply(origin("null"), policy, has_room=True) == ORIGIN_REFUSED


def test_without_a_token_whoever_calls_us_right_may_enter() -> None:
    policy = replace(POLICY, token=None)
    assert upgrade_reply(shown(), policy, has_room=True) == ADMITTED
    assert upgrade_reply(host("evil.test:4711"), policy, has_room=True) == HOST_REFUSED


GUESTS = {token_digest("of-a-guest"): "the guest"}


@pytest.mark.parametrize("token", [TOKEN, None])
@pytest.mark.parametrize(
    ("shows", "expected"),
    [
        ("Bearer of-a-guest", UpgradeReply(101, guest="the guest")),
        (f"Bearer {TOKEN}", ADMITTED),
        ("Bearer of-a-gues", TOKEN_REQUIRED),
        ("Basic of-a-guest", TOKEN_REQUIRED),
        ("", TOKEN_REQUIRED),
    ],
)
def test_a_guest_comes_in_by_its_name_whether_others_need_a_token_or_not(
    token: str | None, shows: str, expected: UpgradeReply
) -> None:
    policy = replace(POLICY, token=token, guests=GUESTS)
    if token is None and expected == TOKEN_REQUIRED:
        expected = ADMITTED
    assert upgrade_reply(shown(shows), policy, has_room=True) == expected
    assert upgrade_reply(
        shown(shows, "Bearer of-a-guest"), replace(policy, token=TOKEN), has_room=True
    ) == (TOKEN_REQUIRED)


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
