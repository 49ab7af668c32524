"""The words for what can be asked."""

from __future__ import annotations

from holdfast import __version__
from holdfast.cli.declarations import VERSION_LINE, Request


def test_the_version_line_is_that_of_the_package() -> None:
    assert f"holdfast {__version__}\n" == VERSION_LINE


def test_what_was_given_is_found_by_its_flag() -> None:
    request = Request(given=(("--net", "a"), ("--write", "."), ("--net", "b")))

    assert request.values("--net") == ("a", "b")
    assert request.value("--write") == "."
    assert request.values("--read") == ()
    assert request.has("--net")
    assert not request.has("--read")
