"""What a proxy did is remembered by host, and not without end."""

from __future__ import annotations

from holdfast.confine.proxy.rules import DenialReason, Stopped, Target, Traffic

A, B, C = (Target(f"{letter}.example", 443) for letter in "abc")


def test_hosts_are_counted_in_the_order_of_their_first_time() -> None:
    traffic = Traffic()
    for target in (B, A, B):
        traffic.let_through(target)
        traffic.stop(target, DenialReason.UNLISTED)
    traffic.stop(None, DenialReason.UNCLEAR)

    assert traffic.reached == (("b.example:443", 2), ("a.example:443", 1))
    assert traffic.stopped == (
        Stopped("b.example:443", DenialReason.UNLISTED, 2),
        Stopped("a.example:443", DenialReason.UNLISTED, 1),
        Stopped("", DenialReason.UNCLEAR, 1),
    )
    assert traffic.unnamed == 0


def test_of_too_many_hosts_only_the_number_is_kept() -> None:
    traffic = Traffic(hosts_max=2)
    for target in (A, B, C, C, A):
        traffic.let_through(target)
        traffic.stop(target, DenialReason.NEARBY)

    assert [host for host, _ in traffic.reached] == ["a.example:443", "b.example:443"]
    assert [each.host for each in traffic.stopped] == ["a.example:443", "b.example:443"]
    assert traffic.unnamed == 4
