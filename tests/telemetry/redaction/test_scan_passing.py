"""Text goes through passes in their order, and in pieces as it does whole."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.telemetry.redaction.known_values import known_pass
from holdfast.telemetry.redaction.scan import Pass, Passes

ONE, TWO = "first-secret", "second-secret"


def hides(value: str) -> Pass:
    found = known_pass([value])
    assert found is not None
    return found


def test_without_passes_nothing_happens() -> None:
    assert (Passes().text(ONE), Passes().data(b"\xff"), Passes().stream().feed(ONE)) == (
        ONE, b"\xff", ONE,
    )  # fmt: skip


def test_each_pass_sees_what_the_one_before_left() -> None:
    both = Passes(hides(ONE), hides(TWO))

    assert both.text(f"{ONE} and {TWO}") == "[redacted:known] and [redacted:known]"
    assert both.data(f"{TWO}é".encode()) == "[redacted:known]é".encode()


@given(
    st.lists(st.sampled_from([ONE, TWO, ONE[:7], TWO[6:], " ", "é", "s"]), max_size=8), st.data()
)
def test_pieces_come_out_as_the_whole_does(parts: list[str], data: st.DataObject) -> None:
    whole, both = "".join(parts), Passes(hides(ONE), hides(TWO))
    at = data.draw(st.integers(0, len(whole)))
    stream = both.stream()
    shown = stream.feed(whole[:at]) + stream.feed(whole[at:])

    assert stream.held <= len(ONE) + len(TWO) + 64
    assert shown + stream.flush() == both.text(whole)
