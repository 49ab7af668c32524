"""Hosts are read once and strictly, and only what the list has is let through."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.confine.failures import SandboxRequestUnfit
from holdfast.confine.proxy.rules import AllowRule, Target, allow_list, is_public, read_target

LIST = allow_list(
    "allowed.com", "*.allowed.org", "odd.example:8443", "192.0.2.7:8080", "[2001:db8::7]"
)

PLAIN = [
    ("allowed.com:443", Target("allowed.com", 443)),
    ("ALLOWED.com:80", Target("allowed.com", 80)),
    ("allowed.com.:443", Target("allowed.com", 443)),
    ("xn--bcher-kva.example:443", Target("xn--bcher-kva.example", 443)),
    ("_dmarc.a-b.example:443", Target("_dmarc.a-b.example", 443)),
    ("192.0.2.7:8080", Target(IPv4Address("192.0.2.7"), 8080)),
    ("[2001:DB8::7]:443", Target(IPv6Address("2001:db8::7"), 443)),
    ("[::ffff:127.0.0.1]:443", Target(IPv4Address("127.0.0.1"), 443)),
    ("registry:443", Target("registry", 443)),
    ("allowed.com", Target("allowed.com", 80)),
]
UNCLEAR = [
    "",
    ":443",
    "allowed.com:",
    "allowed.com:0",
    "allowed.com:65536",
    "allowed.com:0443",
    "allowed.com:+443",
    "allowed.com:443 ",
    "allowed.com:٤٤٣",
    "allowed.com:443:443",
    "allowed.com..:443",
    ".allowed.com:443",
    "a..b:443",
    "allowed.com\0.evil.com:443",
    "allowed.com\0:443",
    "allowed.com\n:443",
    "allowed.com\t.evil.com:443",
    "allowed.com%2eevil.com:443",
    "allowed.com%00.evil.com:443",
    "evil.com#allowed.com:443",
    "evil.com?allowed.com:443",
    "evil.com/allowed.com:443",
    "evil.com\\allowed.com:443",
    "allowed.com@evil.com:443",
    "user:secret@allowed.com:443",
    "allowed。com:443",
    "allowed\uff0ecom:443",
    "\u0430llowed.com:443",  # its first letter is Cyrillic
    "ⓐllowed.com:443",
    "bücher.example:443",
    "allowed.com\u00ad:443",
    "-allowed.com:443",
    "allowed-.com:443",
    "*.allowed.org:443",
    f"{'a' * 64}.com:443",
    f"{'a.' * 127}com:443",
    # addresses in clothes
    "127.1:80",
    "127.0.0.1.:80",
    "0x7f.1:80",
    "0x7f000001:80",
    "0X7F.0.0.1:80",
    "0177.0.0.1:80",
    "127.0.0.01:80",
    "2130706433:80",
    "017700000001:80",
    "1.2.3:80",
    "1.2.3.4.5:80",
    "256.1.1.1:80",
    "evil.0x7f:80",
    "evil.1:80",
    "[127.0.0.1]:80",
    "[::1:80",
    "[::1]]:80",
    "[::1]80",
    "[::1]x:80",
    "[fe80::1%eth0]:80",
    "[fe80::1%25eth0]:80",
    "[allowed.com]:80",
    "[v1.x]:80",
    "::1:80",
    "[]:80",
]


@pytest.mark.parametrize(("text", "target"), PLAIN)
def test_a_plain_target_is_read(text: str, target: Target) -> None:
    assert read_target(text, port_otherwise=80) == target


@pytest.mark.promise("C14")
@pytest.mark.parametrize("text", UNCLEAR)
def test_what_can_be_read_in_two_ways_is_no_target(text: str) -> None:
    assert read_target(text, port_otherwise=80) is None


def test_a_target_without_a_port_needs_one() -> None:
    assert read_target("allowed.com") is None


ALLOWED = ["allowed.com:80", "allowed.com:443", "a.allowed.org:443", "a.b.allowed.org:80"]
ALLOWED += ["Allowed.COM.:443", "odd.example:8443", "192.0.2.7:8080", "[2001:db8:0::7]:80"]
REFUSED = ["allowed.com.evil.com:443", "evilallowed.com:443", "allowed.com:22", "allowed.com:8443"]
REFUSED += ["allowed.org:443", "evilallowed.org:443", "allowed.org.evil.com:443", "com:443"]
REFUSED += ["odd.example:443", "192.0.2.7:80", "169.254.169.254:80", "127.0.0.1:80", "[::1]:80"]
REFUSED += ["sub.allowed.com:443", "xn--allowed-1fg.com:443", "[::ffff:169.254.169.254]:80"]


@pytest.mark.promise("C14")
@pytest.mark.parametrize("text", ALLOWED)
def test_what_is_on_the_list_is_allowed(text: str) -> None:
    target = read_target(text)

    assert target is not None
    assert LIST.allows(target)


@pytest.mark.promise("C14")
@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_on_the_list_is_refused(text: str) -> None:
    target = read_target(text)

    assert target is not None
    assert not LIST.allows(target)


@pytest.mark.promise("C20")
@pytest.mark.parametrize("text", [*ALLOWED, *REFUSED])
def test_an_empty_list_allows_nothing(text: str) -> None:
    target = read_target(text)

    assert target is not None
    assert not allow_list().allows(target)


PUBLIC = ["93.184.216.34", "1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1"]
NEAR = ["127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"]
NEAR += ["169.254.169.254", "100.64.0.1", "100.100.100.200", "0.0.0.0", "0.1.2.3", "224.0.0.1"]
NEAR += [
    "255.255.255.255",
    "240.0.0.1",
    "198.18.0.1",
    "192.0.0.170",
    "168.63.129.16",
    "192.88.99.1",
]
NEAR += ["::", "::1", "::127.0.0.1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "fec0::1"]
NEAR += ["::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b:1::1"]
NEAR += ["2002:7f00:1::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:db8::1", "100::1"]


@pytest.mark.promise("C14")
@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses_are_admitted_for_any_listed_name(text: str) -> None:
    assert is_public(ip_address(text))
    assert allow_list().admits(ip_address(text), 443)


@pytest.mark.promise("C14")
@pytest.mark.parametrize("text", NEAR)
def test_a_name_never_leads_to_what_is_near(text: str) -> None:
    assert not is_public(ip_address(text))
    assert not LIST.admits(ip_address(text), 443)


def test_an_address_that_is_listed_itself_is_meant() -> None:
    near = allow_list("10.1.2.3:443", "127.0.0.1:8080")

    assert near.admits(ip_address("10.1.2.3"), 443)
    assert near.admits(ip_address("::ffff:127.0.0.1"), 8080)
    assert not near.admits(ip_address("10.1.2.3"), 80)
    assert not near.admits(ip_address("10.1.2.4"), 443)


RULES = [
    ("pypi.org", AllowRule("pypi.org")),
    ("PyPI.org.", AllowRule("pypi.org")),
    ("*.pypi.org", AllowRule("pypi.org", is_below=True)),
    ("*.pypi.org:8443", AllowRule("pypi.org", (8443,), is_below=True)),
    ("pypi.org:80", AllowRule("pypi.org", (80,))),
    ("127.0.0.1:8080", AllowRule(IPv4Address("127.0.0.1"), (8080,))),
    ("[::1]:8080", AllowRule(IPv6Address("::1"), (8080,))),
]


@pytest.mark.parametrize(("text", "rule"), RULES)
def test_a_rule_is_read(text: str, rule: AllowRule) -> None:
    assert allow_list(text).rules == (rule,)


UNFIT = [
    ("", "'' is not a host, such as example.org, *.example.org or example.org:8443"),
    ("https://PyPI.org/simple", "'https://PyPI.org/simple' is not a host, such as pypi.org"),
    ("https://me:secret@pypi.org/", "that is not a host, such as pypi.org"),
    ("*", "'*' is not a host, such as example.org, *.example.org or example.org:8443"),
    ("*.org", "'*.org' is too wide: name what the star stands below"),
    ("*.192.0.2.1", "'*.192.0.2.1' is too wide: name what the star stands below"),
    ("localhost:80", "localhost is this machine: give the address and the port, such as "
     "127.0.0.1:8080"),
    ("169.254.169.254", "169.254.169.254 is an address that no process may reach"),
    ("0.0.0.0:80", "0.0.0.0 is an address that no process may reach"),
    ("[fe80::1]:80", "[fe80::1] is an address that no process may reach"),
    ("0x7f.1", "'0x7f.1' is not a host, such as example.org, *.example.org or example.org:8443"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), UNFIT)
def test_a_rule_that_means_nothing_is_refused_with_what_to_write_instead(
    text: str, reason: str
) -> None:
    with pytest.raises(SandboxRequestUnfit) as refused:
        allow_list(text)

    assert refused.value.reason == reason


# The strict reference: the only spellings of what is on the list, each written out whole.
SPELLINGS = re.compile(
    r"allowed\.com\.?:(80|443)"
    r"|([a-z0-9_]([a-z0-9_-]*[a-z0-9_])?\.)+allowed\.org\.?:(80|443)"
    r"|odd\.example\.?:8443"
    r"|192\.0\.2\.7:8080|\[::ffff:(192\.0\.2\.7|c000:207)\]:8080"
    r"|\[2001:(0?db8)(:0{1,4}){0,5}:?(:0{1,4}){0,5}:0{0,3}7\]:(80|443)",
    re.IGNORECASE | re.ASCII,
)
WORDS = """allowed.com allowed.org allowed odd.example evil com . .. : :80 :443 :8443 :8080
192.0.2.7 192.0.2 [ ] ::ffff: 2001:db8::7 @ # / \\ % %00 * - _ 0x 7 0 \ufb00 \u3002 \u0410"""
PIECES = st.sampled_from([*WORDS.split(), "\0", "\n", " ", ""])
NEARLY = st.builds(
    "{}{}{}{}".format,
    st.one_of(st.just(""), PIECES),
    st.sampled_from(["allowed.com", "x.allowed.org", "allowed.org", "odd.example", "192.0.2.7"]),
    st.one_of(st.just(""), PIECES),
    st.sampled_from([":80", ":443", ":8443", ":8080", ":22"]),
)
ANY = st.one_of(NEARLY, st.lists(PIECES, max_size=8).map("".join), st.text(max_size=40))


@pytest.mark.promise("C14")
@settings(max_examples=500)
@given(ANY)
@example("allowed.com:443\n")
@example("a.allowed.org:80")
def test_nothing_is_allowed_that_is_not_spelled_like_the_list(text: str) -> None:
    target = read_target(text)

    if target is not None and LIST.allows(target):
        assert SPELLINGS.fullmatch(text)


@given(ANY)
def test_reading_what_was_read_changes_nothing(text: str) -> None:
    target = read_target(text, port_otherwise=80)

    assert target is None or read_target(str(target)) == target
